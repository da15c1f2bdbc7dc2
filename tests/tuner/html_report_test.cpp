// The report's page: well formed whatever stands in it, and with the numbers of the run.
#include "tuner/html_report.h"

#include <gmock/gmock.h>

#include "markup.h"
#include "tuner/svg_plot.h"
#include "tuner/tune_report.h"

namespace tilewright {
namespace {

using testing::HasSubstr;
using testing::Not;

TuneTrial trial(int block_q, double time_us, double predicted_us) {
    TuneTrial result;
    result.config.block_q = block_q;
    result.measurement.config = result.config;
    result.measurement.median_us = time_us;
    result.measurement.p20_us = time_us - 1;
    result.measurement.p80_us = time_us + 1;
    result.measurement.samples = 33;
    result.measurement.error = 0.000125;
    result.predicted_us = predicted_us;
    return result;
}

TuneTrial failure(Outcome outcome, const std::string& note) {
    TuneTrial result;
    result.measurement.outcome = outcome;
    result.measurement.note = note;
    return result;
}

WorkResult work(const std::string& problem, std::vector<TuneTrial> trials, std::optional<size_t> best) {
    WorkResult result;
    result.problem = result.report.problem = *parse_problem(problem);
    TuneReport& report = result.report;
    report.device.id = "cpu:0";
    report.device.name = "a <fast> & \"quoted\" machine";
    report.strategy = "exhaustive";
    report.trials = std::move(trials);
    report.best = best;
    if (best) report.ties = {*best};
    report.legal = 4321;
    report.seconds = 12.5;
    report.roofline_us = 77.5;
    report.stopped = "budget";
    report.rejected = {{"registers", 765}};
    report.rejected_examples = {{"registers", "it would need 300 registers & has < 255"}};
    summarize_trials(report);
    return result;
}

size_t count_of(const std::string& text, const std::string& what) {
    size_t count = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
}

const char* const small = "forward:sq64,d64,fp32";

TEST(HtmlReport, HoldsTheNumbersOfTheRun) {
    const std::string page = html_report({work(small,
                                               {trial(16, 250.5, 200), trial(32, 123.4, 150), failure(Outcome::compile, "error: expected ';' in <kernel>"),
                                                failure(Outcome::compile, "error: expected ';' in <kernel>"), trial(64, 198.7, 180)},
                                               1)});
    EXPECT_EQ(test::markup_fault(page), "");
    for (const char* expected :
         {"forward:b1,hq1,hkv1,sq64", "a &lt;fast&gt; &amp; &quot;quoted&quot; machine", "5 of 4321 legal configs", "123.4 us", "250.5", "198.7", "77.5 us",
          "never tried: registers", "765", "it would need 300 registers &amp; has &lt; 255", "tried: compile", "error: expected ';' in &lt;kernel&gt;",
          "At the bottom: 2 that failed", "The same in all of them: block_kv 64, ", "Median error 20.16 %, largest 21.56 %"})
        EXPECT_THAT(page, HasSubstr(expected));
    EXPECT_EQ(count_of(page, "<figure>"), 3u);  // the course, the model, and block_q, which alone differs
    EXPECT_EQ(count_of(page, "class=\"winner\""), 3u);
    EXPECT_EQ(count_of(page, "class=\"failed\""), 2u);
    EXPECT_LT(page.find("<td class=\"number\">123.4</td>"), page.find("<td class=\"number\">198.7</td>"));
}

TEST(HtmlReport, ListsNoMoreThanTheTenBest) {
    std::vector<TuneTrial> trials;
    for (int i = 0; i < 15; ++i) trials.push_back(trial(16, 500 - i, 400));
    const std::string page = html_report({work(small, trials, 14)});
    EXPECT_THAT(page, HasSubstr("<td class=\"number\">495</td>"));
    EXPECT_THAT(page, Not(HasSubstr("<td class=\"number\">496</td>")));
}

TEST(HtmlReport, AsksNothingOfTheNetwork) {
    const std::string page = html_report({work(small, {trial(16, 250, 200)}, 0)});
    for (const char* word : {"http:", "https:", "url(", "<script", "<link", "@import", " src="}) EXPECT_THAT(page, Not(HasSubstr(word)));
}

TEST(HtmlReport, HasASectionForEachProblemAndSaysWhyOneHasNone) {
    WorkResult untried;
    untried.problem = *parse_problem("forward:sq256,d64,fp32");
    untried.status = {StatusCode::unavailable, "not tried: interrupted <here>"};
    const std::string page =
        html_report({work(small, {trial(16, 250, 200)}, 0), work("forward:sq128,d64,fp32", {failure(Outcome::timeout, "\x1b[31mlate")}, {}), untried});
    EXPECT_EQ(test::markup_fault(page), "");
    EXPECT_EQ(count_of(page, "<section"), 3u);
    EXPECT_THAT(page, HasSubstr("not tried: interrupted &lt;here&gt;"));
    EXPECT_THAT(page, HasSubstr("No correct config was found"));
}

TEST(HtmlReport, ShowsWhereProblemsWereTunedAndWhatIsMoreExactThanTheBest) {
    WorkResult first = work(small, {trial(16, 250, 200), trial(32, 300, 200)}, 0);
    first.device = "nvidia:<1>";
    first.report.front = {0, 1};
    const std::string page = html_report({first, work("forward:sq128,d64,fp32", {trial(16, 250, 200)}, 0)});
    EXPECT_EQ(test::markup_fault(page), "");
    EXPECT_THAT(page, HasSubstr("<td>nvidia:&lt;1&gt;</td>"));
    EXPECT_EQ(count_of(page, "nearer the reference"), 1u);
}

TEST(HtmlReport, OneTrialAndAModelWithoutAnAnswerStillMakeAPage) {
    const std::string page = html_report({work(small, {trial(16, 250, 1e12)}, 0)});
    EXPECT_EQ(test::markup_fault(page), "");
    EXPECT_THAT(page, Not(HasSubstr("nan")));
    EXPECT_EQ(count_of(page, "<figure>"), 1u);
}

TEST(SvgPlot, TicksAreRoundAndWithinTheRange) {
    for (const auto& [low, high] : {std::pair(1.0, 1.0), {93.0, 107.0}, {3.0, 4000.0}, {0.002, 90000.0}}) {
        const Axis axis = log_axis("t", low, high);
        EXPECT_GE(axis.ticks.size(), 2u) << low << " " << high;
        EXPECT_LE(axis.ticks.size(), 12u) << low << " " << high;
        for (const auto& [value, label] : axis.ticks) {
            EXPECT_GE(value, axis.low);
            EXPECT_LE(value, axis.high);
        }
    }
    EXPECT_EQ(log_axis("t", 93, 107).ticks[1].second, "95");
}

TEST(Markup, IsFoundFaulty) {
    for (const char* wrong : {"<p>", "</p>", "<p></b>", "a & b", "<p class=x></p>", "<a href=\"#x\"></a>", "1 < 2", "<p", "\x1b"})
        EXPECT_NE(test::markup_fault(wrong), "") << wrong;
    EXPECT_EQ(test::markup_fault("<!DOCTYPE html>\n<p id=\"x\"><a href=\"#x\">&lt;</a><br/></p>"), "");
}

}  // namespace
}  // namespace tilewright
