// A tuning database as a recorded space.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "db/store.h"
#include "tuner/replay.h"
#include "tuner/strategy.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

class ReplayedDatabase : public testing::Test {
protected:
    ReplayedDatabase() { std::filesystem::remove(path); }
    ~ReplayedDatabase() override { std::filesystem::remove(path); }

    void add(const std::string& problem, int block_q, int block_kv, Outcome outcome, double us, int64_t race = 0, const std::string& kernels = "now") {
        Store store = *Store::open(path, StoreMode::create);
        MeasurementRow row{*parse_problem(problem), {"nvidia", "sm_90a", "sm90", "H200", 132}, {"nvrtc", "", kernels}, {}, true};
        row.measurement.config.block_q = block_q, row.measurement.config.block_kv = block_kv;
        row.measurement.outcome = outcome, row.measurement.median_us = row.measurement.p20_us = row.measurement.p80_us = us;
        row.measurement.race = race, row.measurement.place = race ? 1 : 0;
        ASSERT_TRUE(store.add_all({row}).ok());
    }

    const std::string path = testing::TempDir() + "tilewright_replay_" + std::to_string(getpid()) + ".db";
    const std::string small = "forward:b1,hq2,hkv2,sq128,skv128,d64,bf16", large = "forward:b1,hq2,hkv2,sq256,skv256,d64,bf16";
};

TEST_F(ReplayedDatabase, HoldsWhatWasMeasuredAloneByTheNewestToolchainWithPredictions) {
    add(small, 16, 16, Outcome::correct, 5, 0, "before");
    add(small, 64, 64, Outcome::correct, 30);
    add(small, 64, 128, Outcome::timeout, 0);
    add(small, 128, 64, Outcome::correct, 20);
    add(small, 128, 64, Outcome::correct, 19);
    add(small, 128, 64, Outcome::correct, 3, 1795978069);
    add(small, 128, 128, Outcome::predicted, 1);
    const auto recorded = read_database_space(path, "");
    ASSERT_TRUE(recorded.ok()) << recorded.status().message();
    ASSERT_EQ(recorded->space.size(), 3u);
    ASSERT_EQ(recorded->space.parameters().size(), 2u);  // the fields that differ
    EXPECT_EQ(recorded->space.parameters()[0].name, "block_q");
    EXPECT_EQ(recorded->space.prior().size(), 3u);
    EXPECT_THAT(recorded->costs, testing::UnorderedElementsAre(30, failed_cost, 19));
    EXPECT_THAT(recorded->outcomes, testing::UnorderedElementsAre("correct", "timeout", "correct"));
    const auto simulation = simulate(*recorded, {.evaluations = 3, .repeats = 5});
    ASSERT_TRUE(simulation.ok());
    EXPECT_EQ(simulation->rows.back().median, 1);
}

TEST_F(ReplayedDatabase, NeedsAProblemIfThereAreSeveral) {
    add(small, 64, 64, Outcome::correct, 30);
    add(large, 64, 64, Outcome::correct, 50);
    EXPECT_THAT(read_database_space(path, "").status().message(), testing::AllOf(HasSubstr("several spaces"), HasSubstr(small), HasSubstr(large)));
    const auto chosen = read_database_space(path, large);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    EXPECT_EQ(chosen->costs, std::vector<double>{50});
    const auto absent = read_database_space(path, "forward:b1,hq1,hkv1,sq1,skv1,d64,bf16");
    EXPECT_EQ(absent.status().code(), StatusCode::not_found);
    EXPECT_THAT(absent.status().message(), HasSubstr("and others"));
}

}  // namespace
}  // namespace tilewright
