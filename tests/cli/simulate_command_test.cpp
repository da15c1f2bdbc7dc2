// simulate and db export together: a database's space and results, written as T1 and T4 and replayed.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/process.h"
#include "core/scratch_directory.h"
#include "db/store.h"
#include "tuner/tuning_space.h"

namespace tilewright {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class SimulateCommand : public testing::Test {
protected:
    ProcessResult run(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), TILEWRIGHT_COMMAND);
        Result<ProcessResult> result = run_process({.arguments = std::move(arguments), .timeout_seconds = 300});
        EXPECT_TRUE(result.ok()) << result.status().message();
        return result.ok() ? *result : ProcessResult{};
    }
    std::string file(const std::string& name) const { return scratch_.file(name); }

    // Every second config of the space alone, then the first two in a race.
    size_t fill(const std::string& database, const Problem& problem) {
        const TuningSpace space = *tuning_space(problem, *find_arch("sm_90a"), {});
        std::vector<MeasurementRow> rows;
        const auto add = [&](size_t index, double us, int64_t race) {
            MeasurementRow row{problem, {"nvidia", "sm_90a", "sm90", "H200", 132}, {"nvrtc", "", "now"}, {}, true};
            row.measurement.config = space.configs[index];
            row.measurement.median_us = row.measurement.p20_us = row.measurement.p80_us = us;
            row.measurement.race = race, row.measurement.place = race ? 1 : 0;
            rows.push_back(row);
        };
        for (size_t index = 0; index < space.configs.size(); index += 2) add(index, 100 + static_cast<double>(index), 0);
        add(0, 90, 1795978069);
        add(2, 91, 1795978069);
        EXPECT_TRUE(Store::open(database, StoreMode::create)->add_all(rows).ok());
        return space.configs.size();
    }

    const std::string problem_ = "forward:b1,hq2,hkv2,sq512,skv512,d64,bf16";
    ScratchDirectory scratch_ = *ScratchDirectory::create();
};

TEST_F(SimulateCommand, ReplaysARacedDatabaseAsT4WithItsSpaceAsT1) {
    const size_t legal = fill(file("t.db"), *parse_problem(problem_));
    ASSERT_EQ(run({"db", "export", file("t.db"), "--all", "--format", "t4", "--out", file("t4")}).exit_code, 0);
    ASSERT_EQ(run({"db", "export", file("t.db"), "--format", "t1", "--out", file("t1")}).exit_code, 0);
    const ProcessResult alone = run({"simulate", "--space", file("t4"), "--repeats", "2", "--json"});
    ASSERT_EQ(alone.exit_code, 0) << alone.error;
    EXPECT_EQ(json::parse(alone.output)["configurations"], (legal + 1) / 2);
    const ProcessResult both = run({"simulate", "--space", file("t4"), "--t1", file("t1"), "--repeats", "2", "--json"});
    ASSERT_EQ(both.exit_code, 0) << both.error;
    EXPECT_EQ(json::parse(both.output)["configurations"], legal);
    EXPECT_EQ(json::parse(both.output)["missing"], legal / 2);
    EXPECT_THAT(run({"simulate", "--space", file("t4"), "--t1", file("t1"), "--repeats", "2"}).output, HasSubstr("have no result and count as failed"));
    EXPECT_THAT(run({"simulate", "--space", file("t.db"), "--t1", file("t1")}).error, HasSubstr("a tuning database knows its space"));
}

TEST_F(SimulateCommand, SavesADatabasesSpaceWithItsPredictions) {
    fill(file("t.db"), *parse_problem(problem_));
    ASSERT_EQ(run({"simulate", "--space", file("t.db"), "--save", file("saved.json.gz")}).exit_code, 0);
    const auto result = [&](const std::string& space) {
        json all = json::parse(run({"simulate", "--space", space, "--repeats", "5", "--evaluations", "20", "--json"}).output);
        return std::pair(all["results"], all["score"]);
    };
    EXPECT_EQ(result(file("saved.json.gz")), result(file("t.db"))) << "the predictions, too, are the same";
}

TEST_F(SimulateCommand, ExportsOneProblemOfSeveral) {
    const std::string other = "forward:b1,hq2,hkv2,sq1024,skv1024,d64,bf16";
    fill(file("t.db"), *parse_problem(problem_));
    fill(file("t.db"), *parse_problem(other));
    for (const char* format : {"t1", "t4"}) {
        const ProcessResult all = run({"db", "export", file("t.db"), "--format", format});
        EXPECT_EQ(all.exit_code, 2);
        EXPECT_THAT(all.error, testing::AllOf(HasSubstr(problem_), HasSubstr(other)));
        const ProcessResult one = run({"db", "export", file("t.db"), "--format", format, "--problem", other});
        EXPECT_EQ(one.exit_code, 0) << one.error;
        EXPECT_TRUE(json::accept(one.output));
    }
    EXPECT_THAT(run({"db", "export", file("t.db"), "--format", "t1", "--problem", "forward:sq3"}).error, HasSubstr("no measurement of forward"));
}

}  // namespace
}  // namespace tilewright
