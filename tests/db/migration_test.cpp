// Files of every earlier version become today's: in the file when it is opened for writing, in memory when it is only read.
#include <gmock/gmock.h>

#include "db/embedded.h"
#include "db/fixtures.h"
#include "db/schema.h"
#include "db/tools/check.h"

namespace tilewright {
namespace {

using namespace testing;  // NOLINT: the fixtures are tilewright::testing

class MigrationTest : public StoreTest, public ::testing::WithParamInterface<int64_t> {
protected:
    // As a build of that version would have left it, with two measurements of the columns that all versions have.
    void make_version(int64_t version) {
        std::string sql;
        for (int64_t i = 0; i < version; ++i) sql += embedded_migrations[i].text;
        sql += "PRAGMA application_id = " + std::to_string(application_id) + "; PRAGMA user_version = " + std::to_string(version) +
               R"(;INSERT INTO device VALUES(1, 'cpu', 'cpu', '', 'Test CPU', 2);
               INSERT INTO toolchain VALUES(1, 'gcc 12.2.0', '-O3', 'aaaa');
               INSERT INTO problem(id, text, operation, dtype, batch, heads_q, heads_kv, seq_q, seq_kv, head_dim, head_dim_v, alignment, window_left, window_right,
                   softcap, bias, alibi, sink) VALUES(1, 'forward:b1,hq8,hkv2,sq1024,skv1024,d64,fp32,causal', 1, 1, 1, 8, 2, 1024, 1024, 64, 64, 1, -1, 0, 0, 0, 0, 0);
               INSERT INTO config VALUES(1, '{"block_q":16}', '8a5cef04ce5fbb35');
               INSERT INTO config VALUES(2, '{"block_q":32}', '0000000000000000');)";
        for (const char* config_and_median : {"1, 1, 200", "2, 1, 100"}) {
            sql += "INSERT INTO measurement(problem, device, toolchain, config, outcome, median_us, p20_us, p80_us, samples, error, clock_mhz, memory_clock_mhz,"
                   " temperature_c, exclusive, driver, host, measured_at, note) VALUES(1, 1, 1, " + std::string(config_and_median) +
                   ", 90, 210, 20, 1e-6, 0, 0, 0, -1, '', '', 1000, '');";
        }
        change(path(), sql);
    }

    void expect_whole(Store& store) {
        EXPECT_EQ(store.info()->schema, current_schema());
        EXPECT_EQ(store.info()->measurements, 2);
        const Result<Measurement> best = store.best(causal_1024(), device());
        ASSERT_TRUE(best.ok()) << best.status().message();
        EXPECT_EQ(best->config.block_q, 32);
    }
};

TEST_P(MigrationTest, opening_for_writing_upgrades_the_file_once) {
    make_version(GetParam());
    {
        Store store = open(StoreMode::write);
        expect_whole(store);
        add(store, timed(50, 64));
    }
    Store store = open(StoreMode::read);
    EXPECT_EQ(store.info()->measurements, 3);
    EXPECT_EQ(store.note(), "");
}

TEST_P(MigrationTest, opening_for_reading_leaves_the_file_and_answers_all_the_same) {
    make_version(GetParam());
    const Result<std::string> before = read_file(path());
    {
        Store store = open(StoreMode::read);
        expect_whole(store);
        EXPECT_EQ(store.note().empty(), GetParam() == current_schema());
    }
    EXPECT_EQ(*read_file(path()), *before);
    DatabaseOptions options;
    options.user_path = path();
    options.use_system = options.use_defaults = options.log_misses = false;
    TuningDatabase database = TuningDatabase::open(options);
    EXPECT_EQ(database.lookup(causal_1024(), database.device(device())).config.block_q, 32);
}

TEST_P(MigrationTest, a_migration_that_fails_leaves_the_version_before) {
    make_version(GetParam());
    if (GetParam() == current_schema()) return;
    // Something of the next version is already there: its migration cannot succeed.
    const char* const there[] = {"ALTER TABLE measurement ADD COLUMN race INTEGER", "ALTER TABLE problem ADD COLUMN page_size INTEGER", "CREATE TABLE code(x)",
                                 "ALTER TABLE problem ADD COLUMN deterministic INTEGER", "ALTER TABLE measurement ADD COLUMN energy_j REAL",
                                 "ALTER TABLE problem ADD COLUMN packed INTEGER"};
    change(path(), there[GetParam() - 1]);
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(open_status(path(), StoreMode::write).ok());
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &handle), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(handle, "PRAGMA user_version", -1, &statement, nullptr), SQLITE_OK);
    ASSERT_EQ(sqlite3_step(statement), SQLITE_ROW);
    EXPECT_EQ(sqlite3_column_int64(statement, 0), GetParam());
    EXPECT_EQ(sqlite3_finalize(statement), SQLITE_OK);
    EXPECT_EQ(sqlite3_close(handle), SQLITE_OK);
}

INSTANTIATE_TEST_SUITE_P(FromVersion, MigrationTest, ::testing::Range(int64_t{1}, current_schema() + 1));

}  // namespace
}  // namespace tilewright
