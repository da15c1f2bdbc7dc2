// The page, its sections and tables.
#include "tuner/html_report.h"

#include <algorithm>
#include <map>

#include "tuner/html_figures.h"
#include "tuner/svg_plot.h"

namespace tilewright {
namespace {

constexpr const char* head = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width"/>
<title>Tilewright tuning report</title>
<style>
:root { --ink: #1b1f24; --faint: #6a737d; --grid: #e3e6ea; --paper: #fff; --mark: #2563a8; --best: #c2410c; --bad: #9aa1a9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --faint: #9aa1a9; --grid: #31363d; --paper: #16191d; --mark: #6aa9ee; --best: #fb923c; --bad: #5b636c; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1080px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.6em; } h2 { font-size: 1.25em; margin-top: 2.5em; border-top: 1px solid var(--grid); padding-top: 1em; overflow-wrap: anywhere; }
h3 { font-size: 1.05em; margin: 1.6em 0 0.3em; }
p, caption, .note { color: var(--faint); } p { max-width: 46em; margin: 0.3em 0; } strong { color: var(--ink); }
table { border-collapse: collapse; margin: 0.5em 0; font-size: 0.93em; } caption { text-align: left; }
th, td { text-align: left; padding: 0.2em 0.9em 0.2em 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wide { overflow-x: auto; } .figures { display: flex; flex-wrap: wrap; gap: 1em; } figure { margin: 0; max-width: 520px; } .small figure { max-width: 340px; } figcaption { color: var(--faint); font-size: 0.93em; }
a { color: var(--mark); }
svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: var(--faint); } .grid { stroke: var(--grid); }
circle.tried { fill: var(--mark); fill-opacity: 0.45; } circle.winner { fill: var(--best); } circle.failed { fill: var(--bad); }
polyline { fill: none; stroke-width: 2; } polyline.best { stroke: var(--best); } polyline.median { stroke: var(--ink); }
polyline.equal { stroke: var(--faint); stroke-width: 1; stroke-dasharray: 4 4; }
</style>
</head>
<body>
<h1>Tuning report</h1>
)";

std::string cell(const std::string& text) { return "<td>" + escape_markup(text) + "</td>"; }
std::string cell(double number) { return "<td class=\"number\">" + short_number(number) + "</td>"; }
std::string anchor(size_t place) { return "problem" + std::to_string(place + 1); }

std::string overview(const std::vector<WorkResult>& results) {
    std::string text =
        "<div class=\"wide\"><table>\n<tr><th>problem</th><th>device</th><th class=\"number\">best, us</th><th class=\"number\">tried</th><th "
        "class=\"number\">legal</th></tr>\n";
    for (size_t i = 0; i < results.size(); ++i) {
        const auto& [problem, status, report, device] = results[i];
        text += "<tr><td><a href=\"#" + anchor(i) + "\">" + escape_markup(to_text(problem)) + "</a></td>" + cell(device);
        if (!status.ok())
            text += "<td colspan=\"3\">" + escape_markup(status.message()) + "</td>";
        else
            text += (report.best ? cell(report.trials[*report.best].measurement.median_us) : "<td class=\"number\">none</td>") +
                    cell(static_cast<double>(report.trials.size())) + cell(static_cast<double>(report.legal));
        text += "</tr>\n";
    }
    return text + "</table></div>\n";
}

std::string summary(const TuneReport& report) {
    std::string text = "<p>" + escape_markup(report.device.id + ", " + report.device.name) + ". Strategy " + escape_markup(report.strategy) + ": <strong>" +
                       std::to_string(report.trials.size()) + " of " + std::to_string(report.legal) + " legal configs</strong> tried in " +
                       short_number(report.seconds) + " s, " + std::to_string(report.resumed) + " of them in earlier runs, " + std::to_string(report.seeds) +
                       " seeds; stopped: " + escape_markup(report.stopped) + ".</p>\n";
    if (report.best) {
        const TuneTrial& best = report.trials[*report.best];
        text += "<p>Best <strong>" + short_number(best.measurement.median_us) + " us</strong>, median " + short_number(report.median_us) + " us, worst " +
                short_number(report.trials[*report.worst].measurement.median_us) + " us; no correct kernel beats " + short_number(report.roofline_us) + " us.";
        if (report.ties.size() > 1)
            text += " " + std::to_string(report.ties.size()) + " configs are within noise of each other; the best is the one whose neighbours are fast too.";
        text += "</p>\n";
    } else {
        text += "<p><strong>No correct config was found.</strong></p>\n";
    }
    for (const std::string& note : report.notes) text += "<p>" + escape_markup(note) + "</p>\n";
    if (!report.device_failure.empty()) text += "<p><strong>" + escape_markup(report.device_failure) + "</strong></p>\n";
    return text;
}

// Trials with their configs, in this order.
std::string trial_table(const char* title, const TuneReport& report, const std::vector<size_t>& order) {
    std::vector<ConfigField> differing;
    std::string same;
    for (const ConfigField& field : config_fields()) {
        const int value = report.trials[order[0]].config.*field.member;
        if (std::ranges::all_of(order, [&](size_t i) { return report.trials[i].config.*field.member == value; }))
            same += (same.empty() ? "" : ", ") + std::string(field.name) + " " + std::to_string(value);
        else
            differing.push_back(field);
    }
    std::string text =
        "<h3>" + std::string(title) + "</h3>\n<div class=\"wide\"><table>\n<tr><th class=\"number\">median, us</th><th class=\"number\">20 to 80 %</th>"
        "<th class=\"number\">samples</th><th class=\"number\">model, us</th><th class=\"number\">error</th>";
    for (const ConfigField& field : differing) text += "<th class=\"number\">" + std::string(field.name) + "</th>";
    text += "</tr>\n";
    for (const size_t i : order) {
        const Measurement& measurement = report.trials[i].measurement;
        text += "<tr>" + cell(measurement.median_us) + "<td class=\"number\">" + short_number(measurement.p20_us) + " to " + short_number(measurement.p80_us) +
                "</td>" + cell(measurement.samples) + cell(report.trials[i].predicted_us) + cell(measurement.error);
        for (const ConfigField& field : differing) text += cell(measurement.config.*field.member);
        text += "</tr>\n";
    }
    text += "</table></div>\n";
    return same.empty() ? text : text + "<p>The same in all of them: " + same + ".</p>\n";
}

std::string best_tables(const TuneReport& report) {
    std::vector<size_t> order;
    for (size_t i = 0; i < report.trials.size(); ++i)
        if (report.trials[i].measurement.outcome == Outcome::correct) order.push_back(i);
    std::ranges::stable_sort(order, {}, [&](size_t i) { return std::pair(i != *report.best, report.trials[i].measurement.median_us); });
    order.resize(std::min<size_t>(order.size(), 10));
    std::string text = trial_table("The ten best", report, order);
    if (report.front.size() > 1) text += trial_table("No other is both faster and nearer the reference than one of these", report, report.front);
    return text;
}

// Failures with the same words are one row.
std::string rejections(const TuneReport& report) {
    std::map<std::pair<std::string, std::string>, int> failures;
    for (const TuneTrial& trial : report.trials)
        if (trial.measurement.outcome != Outcome::correct) ++failures[{name(trial.measurement.outcome), trial.measurement.note.substr(0, 300)}];
    if (report.rejected.empty() && failures.empty()) return "<h3>Rejected</h3>\n<p>Nothing.</p>\n";
    std::string text = "<h3>Rejected</h3>\n<div class=\"wide\"><table>\n<tr><th>reason</th><th class=\"number\">configs</th><th>in words</th></tr>\n";
    for (const auto& [constraint, count] : report.rejected) {
        const auto example = report.rejected_examples.find(constraint);
        text += "<tr>" + cell("never tried: " + constraint) + cell(static_cast<double>(count)) +
                cell(example == report.rejected_examples.end() ? "" : "for example: " + example->second) + "</tr>\n";
    }
    for (const auto& [reason, count] : failures) text += "<tr>" + cell("tried: " + reason.first) + cell(count) + cell(reason.second) + "</tr>\n";
    return text + "</table></div>\n";
}

}  // namespace

std::string html_report(const std::vector<WorkResult>& results) {
    std::string page = head;
    if (results.size() > 1) page += overview(results);
    for (size_t i = 0; i < results.size(); ++i) {
        const auto& [problem, status, report, device] = results[i];
        page += "<section id=\"" + anchor(i) + "\">\n<h2>" + escape_markup(to_text(problem)) + "</h2>\n";
        if (!status.ok())
            page += "<p>" + escape_markup(status.message()) + "</p>\n";
        else
            page += summary(report) + (report.best ? best_tables(report) + search_figures(report) + tunable_figures(report) : "") + rejections(report);
        page += "</section>\n";
    }
    return page + "</body>\n</html>\n";
}

}  // namespace tilewright
