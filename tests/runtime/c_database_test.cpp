// The C interface to tuning databases alone: any architecture, no device.
#include <gmock/gmock.h>

#include "core/scratch_directory.h"
#include "db/store.h"
#include "runtime/c_api.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

class CDatabase : public testing::Test {
    Result<ScratchDirectory> folder_ = ScratchDirectory::create();

protected:
    const std::string path = folder_->file("t.db");

    void measure(const char* text, double median_us, int dq, double error) {
        Result<Store> store = Store::open(path, StoreMode::create);
        ASSERT_TRUE(store.ok()) << store.status().message();
        MeasurementRow row{*parse_problem(text), {"nvidia", "sm_90a", "sm90", "NVIDIA H200", 132}, {"nvrtc", "-O3", "aaaa"}, {}, true};
        Measurement& m = row.measurement;
        m.config.block_q = 64, m.config.block_kv = 128, m.config.workers = 2, m.config.stages = 2, m.config.dq = dq;
        m.median_us = median_us, m.p20_us = 0.98 * median_us, m.p80_us = 1.02 * median_us, m.error = error, m.measured_at = 1000;
        ASSERT_TRUE(store->add_all({row}).ok());
    }
    tilewright_database* open(const char* arch = "sm_90a", const char* device = "NVIDIA H200", int units = 132) {
        tilewright_database_options options = TILEWRIGHT_INIT_DATABASE_OPTIONS;
        options.arch = arch, options.device = device, options.units = units, options.database = path.c_str();
        tilewright_database* opened = nullptr;
        EXPECT_EQ(tilewright_database_open(&options, &opened), TILEWRIGHT_OK) << tilewright_last_error();
        return opened;
    }
    static tilewright_config ask(tilewright_database* database, const char* text, const tilewright_limits* limits = nullptr) {
        tilewright_problem problem = TILEWRIGHT_INIT_PROBLEM;
        tilewright_config config = TILEWRIGHT_INIT_CONFIG;
        EXPECT_EQ(tilewright_parse_problem(text, &problem), TILEWRIGHT_OK) << tilewright_last_error();
        EXPECT_EQ(tilewright_database_lookup(database, &problem, limits, &config), TILEWRIGHT_OK) << tilewright_last_error();
        return config;
    }
};

constexpr char training[] = "backward:b1,hq8,hkv8,sq1024,skv1024,d128,bf16";

TEST_F(CDatabase, AnswersWithProvenanceAgeAndSpreadForADeviceThatIsNotHere) {
    measure(training, 100, 1, 1e-3);
    tilewright_database* database = open();
    const tilewright_config exact = ask(database, training);
    EXPECT_EQ(exact.provenance, TILEWRIGHT_EXACT);
    EXPECT_EQ(std::tuple(exact.block_q, exact.block_kv, exact.median_us, exact.measured_at), std::tuple(64, 128, 100.0, int64_t{1000}));
    EXPECT_NEAR(exact.spread, 0.04, 1e-6);
    EXPECT_NEAR(exact.error, 1e-3, 1e-8);
    EXPECT_STREQ(exact.problem, training);
    EXPECT_STREQ(exact.device, "NVIDIA H200");
    EXPECT_STREQ(exact.database, path.c_str());
    const tilewright_config near = ask(database, "backward:b1,hq8,sq1100,d128,bf16");
    EXPECT_EQ(near.provenance, TILEWRIGHT_NEAREST);
    EXPECT_EQ(near.differences, uint32_t{TILEWRIGHT_DIFFERS_SEQ_Q | TILEWRIGHT_DIFFERS_SEQ_KV});
    tilewright_database_close(database);
    database = open("sm_90a", nullptr, 0);
    EXPECT_EQ(ask(database, training).provenance, TILEWRIGHT_FAMILY);
    tilewright_database_close(database);
    database = open("gfx942", nullptr, 0);
    const tilewright_config predicted = ask(database, training);
    EXPECT_EQ(predicted.provenance, TILEWRIGHT_PREDICTED);
    EXPECT_EQ(predicted.problem, nullptr);
    EXPECT_EQ(predicted.database, nullptr);
    tilewright_database_close(database);
}

TEST_F(CDatabase, LimitsLeaveOutWhatIsNotRepeatableTooInaccurateOrTakesTooMuch) {
    measure(training, 100, 1, 1e-3);
    measure(training, 120, 0, 1e-5);
    tilewright_database* database = open();
    EXPECT_EQ(ask(database, training).median_us, 100);
    tilewright_limits limits = TILEWRIGHT_INIT_LIMITS;
    EXPECT_EQ(ask(database, training, &limits).median_us, 100);
    limits.deterministic = 1;
    const tilewright_config repeatable = ask(database, training, &limits);
    EXPECT_EQ(std::tuple(repeatable.median_us, repeatable.differences), std::tuple(120.0, uint32_t{TILEWRIGHT_DIFFERS_DETERMINISTIC}));
    limits = TILEWRIGHT_INIT_LIMITS;
    limits.max_error = 1e-4;
    EXPECT_EQ(ask(database, training, &limits).median_us, 120);
    limits = TILEWRIGHT_INIT_LIMITS;
    limits.max_workspace_bytes = 2 * 4 * 8 * 1024;  // row statistics, and no sums of dQ
    EXPECT_EQ(ask(database, training, &limits).median_us, 120);
    tilewright_database_close(database);
}

TEST_F(CDatabase, SeesWhatIsStoredAfterARefresh) {
    tilewright_database* database = open();
    EXPECT_NE(ask(database, training).provenance, TILEWRIGHT_EXACT);
    measure(training, 100, 1, 1e-3);
    int32_t changed = 0;
    EXPECT_EQ(tilewright_database_refresh(database, &changed), TILEWRIGHT_OK);
    EXPECT_EQ(changed, 1);
    EXPECT_EQ(ask(database, training).provenance, TILEWRIGHT_EXACT);
    EXPECT_EQ(tilewright_database_refresh(nullptr, nullptr), TILEWRIGHT_INVALID_ARGUMENT);
    tilewright_database_close(database);
}

TEST_F(CDatabase, AnOlderCallersAnswerIsNotWrittenBehindItsEnd) {
    measure(training, 100, 1, 1e-3);
    tilewright_database* database = open();
    tilewright_problem problem = TILEWRIGHT_INIT_PROBLEM;
    ASSERT_EQ(tilewright_parse_problem(training, &problem), TILEWRIGHT_OK);
    tilewright_config config = TILEWRIGHT_INIT_CONFIG;
    config.struct_size = c_api::first_config_size, config.measured_at = 7;
    ASSERT_EQ(tilewright_database_lookup(database, &problem, nullptr, &config), TILEWRIGHT_OK);
    EXPECT_EQ(std::tuple(config.median_us, config.measured_at, config.struct_size), std::tuple(100.0, int64_t{7}, uint64_t{c_api::first_config_size}));
    tilewright_database_close(database);
}

TEST_F(CDatabase, NamesWhatIsWrong) {
    tilewright_database_options options = TILEWRIGHT_INIT_DATABASE_OPTIONS;
    tilewright_database* database = nullptr;
    EXPECT_EQ(tilewright_database_open(&options, &database), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_STREQ(tilewright_last_error(), "options.arch is null");
    options.arch = "gfx1";
    EXPECT_EQ(tilewright_database_open(&options, &database), TILEWRIGHT_NOT_FOUND);
    EXPECT_THAT(tilewright_last_error(), HasSubstr("'gfx1'"));
    options.arch = "gfx942", options.units = -1;
    EXPECT_EQ(tilewright_database_open(&options, &database), TILEWRIGHT_INVALID_ARGUMENT);
    options.struct_size = 8;
    EXPECT_EQ(tilewright_database_open(&options, &database), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_THAT(tilewright_last_error(), HasSubstr("options.struct_size is 8"));
    EXPECT_EQ(database, nullptr);
    database = open("gfx942");
    tilewright_limits limits = TILEWRIGHT_INIT_LIMITS;
    limits.struct_size = 8;
    tilewright_problem problem = TILEWRIGHT_INIT_PROBLEM;
    tilewright_config config = TILEWRIGHT_INIT_CONFIG;
    EXPECT_EQ(tilewright_database_lookup(database, &problem, &limits, &config), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_THAT(tilewright_last_error(), HasSubstr("limits.struct_size is 8"));
    tilewright_database_close(database);
    tilewright_database_close(nullptr);
}

}  // namespace
}  // namespace tilewright
