// tune as people call it: a list of problems on the CPU, its table, its JSON and its report, which is looked at in a browser where there is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/process.h"
#include "core/scratch_directory.h"
#include "db/store.h"
#include "markup.h"
#include "runtime/device_class.h"
#include "tuner/device_tasks.h"

namespace tilewright {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class TuneCommand : public testing::Test {
protected:
    ProcessResult tune(std::vector<std::string> arguments, std::vector<std::pair<std::string, std::string>> environment = {}) {
        if (std::ranges::find(arguments, "--budget") == arguments.end()) arguments.insert(arguments.end(), {"--budget", "3"});
        arguments.insert(arguments.begin(), {TILEWRIGHT_COMMAND, "tune", "--db", file("t.db"), "--quiet"});
        Result<ProcessResult> result = run_process({.arguments = std::move(arguments), .environment = std::move(environment), .timeout_seconds = 300});
        EXPECT_TRUE(result.ok()) << result.status().message();
        return result.ok() ? *result : ProcessResult{};
    }
    std::string file(const std::string& name) const { return scratch_.file(name); }

    ScratchDirectory scratch_ = *ScratchDirectory::create();
};

std::string microseconds(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f us", value);
    return text;
}

TEST_F(TuneCommand, TunesAListAndWritesAPageWithItsNumbers) {
    ASSERT_TRUE(write_file(file("list"), "# small ones\nforward:sq64,d64,fp32\nforward:hq2,sq128,d64,fp32,causal  # two heads\n").ok());
    const ProcessResult run = tune({"--problems", file("list"), "--json", "--report", file("report.html")});
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const json results = json::parse(run.output);
    ASSERT_TRUE(results.is_array());
    ASSERT_EQ(results.size(), 2u);
    EXPECT_THAT(results[1]["problem"], HasSubstr("hq2"));

    const Result<std::string> page = read_file(file("report.html"));
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(test::markup_fault(*page), "");
    for (const json& result : results) {
        EXPECT_EQ(result["tried"], 3);
        EXPECT_THAT(*page, HasSubstr("<h2>" + result["problem"].get<std::string>() + "</h2>"));
        EXPECT_THAT(*page, HasSubstr("3 of " + result["legal"].dump() + " legal configs"));
        for (const auto& [constraint, count] : result["rejected"].items())
            EXPECT_THAT(*page, HasSubstr("never tried: " + constraint + "</td><td class=\"number\">" + count.dump() + "<"));
    }

    // The same again finds all in the database and prints the table.
    const ProcessResult table = tune({"--problems", file("list")});
    EXPECT_EQ(table.exit_code, 0) << table.error;
    for (const json& result : results) EXPECT_THAT(table.output, HasSubstr(microseconds(result["best"]["median_us"].get<double>())));
    EXPECT_THAT(table.output, HasSubstr("2 of 2 problems have a winner"));

    const std::string browser = find_program("chromium");
    if (browser.empty()) GTEST_SKIP() << "all but this passed: there is no chromium to look at the page with";
    const std::string shot = std::string(TILEWRIGHT_COMMAND) + "_report.png";
    std::remove(shot.c_str());
    const auto looked = run_process({.arguments = {browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,2000",
                                                   "--user-data-dir=" + file("profile"), "--screenshot=" + shot, "file://" + file("report.html")},
                                     .timeout_seconds = 120});
    ASSERT_TRUE(looked.ok()) << looked.status().message();
    const Result<std::string> picture = read_file(shot);
    ASSERT_TRUE(picture.ok()) << looked->error;
    EXPECT_GT(picture->size(), 20000u) << shot << " is all but empty";
}

TEST_F(TuneCommand, OneProblemIsAnObjectAndSeveralAreAnArray) {
    const ProcessResult one = tune({"--problem", "forward:sq64,d64,fp32", "--json"});
    EXPECT_TRUE(json::parse(one.output).is_object()) << one.error;
    const ProcessResult two = tune({"--problem", "forward:sq64,d64,fp32", "--problem", "forward:sq96,d64,fp32", "--json"});
    EXPECT_EQ(json::parse(two.output).size(), 2u) << two.error;
    EXPECT_TRUE(json::parse(two.output).is_array());
}

TEST_F(TuneCommand, TunesWhatLookupsMissedOnTheDevice) {
    const DeviceClass here = device_class(*find_device("cpu:0"));
    {
        Store store = *Store::open(file("t.db"), StoreMode::create);
        DeviceClass other = here;
        other.name = "another processor";
        ASSERT_TRUE(store.add_misses({{"forward:b1,hq1,hkv1,sq64,skv64,d64,fp32", here, 3, 0}, {"forward:b1,hq1,hkv1,sq96,skv96,d64,fp32", other, 9, 0}}).ok());
    }
    const ProcessResult run = tune({"--from-misses", "--budget", "2%", "--json"});
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const json results = json::parse(run.output);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_THAT(results[0]["problem"], HasSubstr("sq64"));
    EXPECT_EQ(results[0]["device"], "cpu:0");
    EXPECT_EQ(results[0]["tried"], static_cast<int>(std::ceil(0.02 * results[0]["legal"].get<double>())));
    const ProcessResult again = tune({"--from-misses"});
    EXPECT_EQ(again.exit_code, 2);
    EXPECT_THAT(again.error, HasSubstr("no lookup on cpu:0 missed a problem"));
}

// The stand-ins run nothing, so no result is right; what fits a unit they say all the same: two blocks, or three of 128 threads and one of others.
TEST_F(TuneCommand, SaysHowOftenTheModelAndTheDeviceAgreeOnOccupancy) {
    const struct {
        const char *device, *variable, *library;
    } stand_ins[] = {{"nvidia:0", "TILEWRIGHT_CUDA_LIBRARY", TILEWRIGHT_FAKE_CUDA}, {"amd:0", "TILEWRIGHT_HIP_LIBRARY", TILEWRIGHT_FAKE_HIP}};
    for (const auto& one : stand_ins) {
        const std::string problem = "forward:hq2,sq128,d64,bf16";
        const ProcessResult run = tune({"--device", one.device, "--problem", problem, "--budget", "6", "--json"}, {{one.variable, one.library}});
        const json result = json::parse(run.output, nullptr, false);
        if (!result.is_object() || result["outcomes"].contains("compile")) GTEST_SKIP() << one.device << ": no compiler: " << run.error << run.output;
        ASSERT_TRUE(result.contains("occupancy")) << run.output;
        EXPECT_EQ(result["occupancy"]["compared"], 6) << run.output;
        EXPECT_EQ(result["occupancy"].contains("first_difference"), result["occupancy"]["agreed"] < 6) << run.output;
        const ProcessResult table = tune({"--device", one.device, "--problem", problem, "--budget", "12"}, {{one.variable, one.library}});
        EXPECT_THAT(table.output, HasSubstr("occupancy: the model agrees with the device for ")) << table.error;
        EXPECT_THAT(table.output, HasSubstr(" of 6 candidates")) << "of this run alone";
    }
    EXPECT_THAT(tune({"--problem", "forward:sq64,d64,fp32"}).output, testing::Not(HasSubstr("occupancy")));
}

TEST_F(TuneCommand, SaysWhatIsWrongBeforeAnythingRuns) {
    ASSERT_TRUE(write_file(file("list"), "forward:sq64,d64,fp32\n\nforward:sq64,colour\n").ok());
    const ProcessResult wrong = tune({"--problems", file("list")});
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_THAT(wrong.error, HasSubstr("line 3: "));
    EXPECT_THAT(wrong.error, HasSubstr("colour"));
    EXPECT_FALSE(read_file(file("t.db")).ok());
    const ProcessResult nowhere = tune({"--problem", "forward:sq64,d64,fp32", "--report", file("no/such.html")});
    EXPECT_EQ(nowhere.exit_code, 2);
    EXPECT_THAT(nowhere.error, HasSubstr("--report: cannot write"));
    EXPECT_FALSE(read_file(file("t.db")).ok());
    EXPECT_THAT(tune({}).error, HasSubstr("no problem given"));
    EXPECT_THAT(tune({"--problem", "forward:sq64,d64,fp32", "--device", "cpu:0,cpu:9"}).error, HasSubstr("no device 'cpu:9'"));
    EXPECT_THAT(tune({"--problem", "forward:sq64,d64,fp32", "--budget", "0%"}).error, HasSubstr("above 0%"));
    EXPECT_THAT(tune({"--problem", "forward:sq64,d64,fp32", "--budget", "x%"}).error, HasSubstr("above 0%"));
}

}  // namespace
}  // namespace tilewright
