// What is plotted, and what the captions say.
#include "tuner/html_figures.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tuner/svg_plot.h"

namespace tilewright {
namespace {

// The model's time of a config that it cannot judge is absurd, 1e12 us.
bool has_prediction(const TuneTrial& trial) { return trial.predicted_us > 0 && trial.predicted_us < 1e12; }
bool is_correct(const TuneTrial& trial) { return trial.measurement.outcome == Outcome::correct; }

double lowest_us(const TuneReport& report) {
    double lowest = report.trials[*report.best].measurement.median_us;
    for (const TuneTrial& trial : report.trials)
        if (is_correct(trial)) lowest = std::min(lowest, trial.measurement.median_us);
    return lowest;
}
double highest_us(const TuneReport& report) { return report.trials[*report.worst].measurement.median_us; }

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

std::string tooltip(const TuneTrial& trial) { return short_number(trial.measurement.median_us) + " us " + to_json(trial.config); }

std::string figure(const std::string& title, const std::string& svg, const std::string& caption) {
    return "<figure><h3>" + escape_markup(title) + "</h3>\n" + svg + "<figcaption>" + escape_markup(caption) + "</figcaption></figure>\n";
}

std::string best_so_far(const TuneReport& report) {
    const auto count = static_cast<double>(report.trials.size());
    Plot plot(520, 320, linear_axis("trial", 0, count), log_axis("time, us", lowest_us(report), highest_us(report)));
    std::vector<std::pair<double, double>> curve;
    int64_t failed = 0;
    for (size_t i = 0; i < report.trials.size(); ++i) {
        const TuneTrial& trial = report.trials[i];
        const auto number = static_cast<double>(i + 1);
        if (!is_correct(trial)) {
            plot.point(number, 0, "failed", std::string(name(trial.measurement.outcome)) + " " + to_json(trial.config));
            ++failed;
            continue;
        }
        plot.point(number, trial.measurement.median_us, i == *report.best ? "winner" : "tried", tooltip(trial));
        const double before = curve.empty() ? trial.measurement.median_us : curve.back().second;
        if (!curve.empty()) curve.emplace_back(number, before);
        curve.emplace_back(number, std::min(before, trial.measurement.median_us));
    }
    curve.emplace_back(count, curve.back().second);
    plot.line(curve, "best");
    std::string caption = "Each dot is a trial; the line is the best so far.";
    if (failed > 0) caption += " At the bottom: " + std::to_string(failed) + " that failed.";
    if (report.resumed > 0) caption += " The first " + std::to_string(report.resumed) + " are of earlier runs.";
    return figure("Best so far", plot.svg("best time so far by number of trials"), caption);
}

std::string model_against_measured(const TuneReport& report) {
    double low = lowest_us(report), high = highest_us(report);
    std::vector<double> errors;
    for (const TuneTrial& trial : report.trials) {
        if (!is_correct(trial) || !has_prediction(trial)) continue;
        low = std::min(low, trial.predicted_us), high = std::max(high, trial.predicted_us);
        errors.push_back(std::abs(trial.predicted_us / trial.measurement.median_us - 1));
    }
    if (errors.empty()) return "";
    Plot plot(520, 320, log_axis("measured, us", low, high), log_axis("model, us", low, high));
    plot.line({{low, low}, {high, high}}, "equal");
    for (size_t i = 0; i < report.trials.size(); ++i)
        if (const TuneTrial& trial = report.trials[i]; is_correct(trial) && has_prediction(trial))
            plot.point(trial.measurement.median_us, trial.predicted_us, i == *report.best ? "winner" : "tried", tooltip(trial));
    return figure("Model against measured", plot.svg("predicted time by measured time"),
                  "The dashed line is a model that is right. Median error " + short_number(100 * median(errors)) + " %, largest " +
                      short_number(100 * *std::ranges::max_element(errors)) + " %.");
}

std::string tunable(const TuneReport& report, const ConfigField& field, const std::map<int, std::vector<size_t>>& by_value) {
    std::vector<std::string> labels;
    for (const auto& [value, trials] : by_value) labels.push_back(std::to_string(value));
    Plot plot(340, 240, category_axis(field.name, labels), log_axis("time, us", lowest_us(report), highest_us(report)));
    double place = 0;
    for (const auto& [value, trials] : by_value) {
        std::vector<double> times;
        for (const size_t i : trials) {
            // Spread sideways by the golden ratio, so that equal times do not hide each other.
            const double aside = 0.5 * (std::fmod(static_cast<double>(i) * 0.6180339887, 1) - 0.5);
            times.push_back(report.trials[i].measurement.median_us);
            plot.point(place + aside, times.back(), i == *report.best ? "winner" : "tried", tooltip(report.trials[i]));
        }
        plot.line({{place - 0.35, median(times)}, {place + 0.35, median(times)}}, "median");
        ++place;
    }
    return figure(field.name, plot.svg("time by " + std::string(field.name)), field.help);
}

}  // namespace

std::string search_figures(const TuneReport& report) { return "<div class=\"figures\">\n" + best_so_far(report) + model_against_measured(report) + "</div>\n"; }

std::string tunable_figures(const TuneReport& report) {
    std::string figures;
    for (const ConfigField& field : config_fields()) {
        std::map<int, std::vector<size_t>> by_value;
        for (size_t i = 0; i < report.trials.size(); ++i)
            if (is_correct(report.trials[i])) by_value[report.trials[i].config.*field.member].push_back(i);
        if (by_value.size() > 1) figures += tunable(report, field, by_value);
    }
    if (figures.empty()) return "";
    return "<h3>Time by each tunable</h3>\n<p>Each dot is a correct trial, the bar is the median of its value, the winner stands out.</p>\n<div "
           "class=\"figures small\">\n" +
           figures + "</div>\n";
}

}  // namespace tilewright
