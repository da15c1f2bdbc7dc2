// Files that are not as they should be: each has a defined outcome and a sentence, and none is changed.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <filesystem>

#include "db/file_system.h"
#include "db/fixtures.h"
#include "db/schema.h"

namespace tilewright {
namespace {

using namespace testing;  // NOLINT: the fixtures are tilewright::testing
using ::testing::HasSubstr;

class OpenTest : public StoreTest {
protected:
    static std::string bytes_of(const std::string& path) {
        Result<std::string> bytes = read_file(path);
        return bytes.ok() ? *bytes : "";
    }

    void make_sound() {
        Store store = open();
        add(store, timed(100));
    }

    // Lookups go on without the file and say why.
    void expect_lookup_survives(const std::string& why) const {
        DatabaseOptions options;
        options.user_path = path();
        options.use_system = options.use_defaults = options.log_misses = false;
        TuningDatabase database = TuningDatabase::open(options);
        EXPECT_EQ(database.lookup(causal_1024(), database.device(device())).provenance, Provenance::heuristic);
        ASSERT_EQ(database.layers().size(), 1u);
        EXPECT_THAT(database.layers()[0].status.message(), HasSubstr(why));
    }

    // No mode opens it, the sentence holds `why`, and not a byte of it changes.
    void expect_refused(StatusCode code, const std::string& why) const {
        const std::string before = bytes_of(path());
        for (const StoreMode mode : {StoreMode::read, StoreMode::write, StoreMode::create}) {
            const Status status = open_status(path(), mode);
            EXPECT_EQ(status.code(), code) << status.message();
            EXPECT_THAT(status.message(), HasSubstr(why));
            EXPECT_THAT(status.message(), HasSubstr(path()));
        }
        EXPECT_EQ(bytes_of(path()), before);
        expect_lookup_survives(why);
    }
};

TEST_F(OpenTest, a_file_that_is_absent_is_made_only_when_asked_for) {
    EXPECT_EQ(open_status(path(), StoreMode::read).code(), StatusCode::not_found);
    EXPECT_EQ(open_status(path(), StoreMode::write).code(), StatusCode::not_found);
    EXPECT_FALSE(std::filesystem::exists(path()));
    EXPECT_TRUE(open_status(path("new/folder/t.db"), StoreMode::create).ok());
    EXPECT_TRUE(std::filesystem::exists(path("new/folder/t.db")));
}

TEST_F(OpenTest, a_text_file_is_left_as_it_is) {
    ASSERT_TRUE(write_file(path(), std::string(10000, 'x')).ok());
    expect_refused(StatusCode::invalid_argument, "is not an SQLite database");
}

TEST_F(OpenTest, another_programs_database_is_left_as_it_is) {
    change(path(), "CREATE TABLE theirs(x)");
    expect_refused(StatusCode::invalid_argument, "another program");
}

TEST_F(OpenTest, a_newer_schema_is_left_as_it_is) {
    make_sound();
    change(path(), "PRAGMA journal_mode = DELETE; PRAGMA user_version = 1000");
    expect_refused(StatusCode::unsupported, "schema version 1000, this build knows up to");
}

TEST_F(OpenTest, a_folder_is_no_database) {
    ASSERT_TRUE(std::filesystem::create_directory(path()));
    EXPECT_EQ(open_status(path(), StoreMode::create).code(), StatusCode::invalid_argument);
    EXPECT_THAT(open_status(path(), StoreMode::read).message(), HasSubstr("not a regular file"));
}

TEST_F(OpenTest, an_empty_file_is_refused_for_reading_and_filled_for_writing) {
    ASSERT_TRUE(write_file(path(), "").ok());
    EXPECT_THAT(open_status(path(), StoreMode::read).message(), HasSubstr("is empty"));
    EXPECT_TRUE(open_status(path(), StoreMode::write).ok());
    EXPECT_TRUE(open_status(path(), StoreMode::read).ok());
}

TEST_F(OpenTest, a_file_cut_short_is_called_corrupt) {
    make_sound();
    change(path(), "PRAGMA journal_mode = DELETE");
    std::filesystem::resize_file(path(), 9000);
    for (const StoreMode mode : {StoreMode::read, StoreMode::write}) {
        const Status status = open_status(path(), mode);
        EXPECT_EQ(status.code(), StatusCode::io) << status.message();
        EXPECT_THAT(status.message(), HasSubstr("corrupt"));
    }
    expect_lookup_survives("corrupt");
}

TEST_F(OpenTest, damage_in_any_page_is_an_error_or_missing_rows_but_never_a_crash) {
    {
        Store store = open();
        for (int i = 0; i < 300; ++i) add(store, timed(100 + i, 16 + i % 50));
    }
    change(path(), "PRAGMA journal_mode = DELETE");
    const std::string sound = bytes_of(path());
    uint32_t random = 12345;
    int refused = 0;
    for (size_t page = 0; page * 4096 < sound.size(); ++page) {
        std::string damaged = sound;
        for (int i = 0; i < 64; ++i) {
            random = random * 1664525 + 1013904223;
            damaged[page * 4096 + (random >> 8) % 4096] = static_cast<char>(random >> 24);
        }
        ASSERT_TRUE(write_file(path(), damaged).ok());
        DatabaseOptions options;
        options.user_path = path();
        options.use_system = options.use_defaults = options.log_misses = false;
        TuningDatabase database = TuningDatabase::open(options);
        (void)database.lookup(causal_1024(), database.device(device()));
        refused += !database.layers()[0].status.ok();
    }
    EXPECT_GT(refused, 0);
}

TEST_F(OpenTest, a_trigger_or_view_of_somebody_elses_making_is_named_and_the_file_not_used) {
    make_sound();
    change(path(), "CREATE TRIGGER evil AFTER INSERT ON measurement BEGIN DELETE FROM measurement; END");
    EXPECT_THAT(open_status(path(), StoreMode::write).message(), HasSubstr("trigger evil"));
    expect_lookup_survives("trigger evil");
    change(path(), "DROP TRIGGER evil; DROP VIEW best; CREATE VIEW best AS SELECT 1 AS measurement, 1 AS problem");
    EXPECT_THAT(open_status(path(), StoreMode::read).message(), HasSubstr("view best"));
    expect_lookup_survives("view best");
}

TEST_F(OpenTest, a_missing_index_is_named) {
    make_sound();
    change(path(), "DROP INDEX measurement_correct");
    EXPECT_THAT(open_status(path(), StoreMode::read).message(), HasSubstr("lacks the index measurement_correct"));
}

TEST_F(OpenTest, rows_that_make_no_problem_or_config_are_counted_and_skipped) {
    {
        Store store = open();
        add(store, timed(300, 64));
        add(store, timed(200, 128));
        add(store, timed(100), problem("forward:b2,sq8"));
    }
    change(path(), R"(UPDATE config SET json = '{"block_q":128,"warp_speed":9}' WHERE json LIKE '%128%';)"
                   "UPDATE problem SET heads_q = -1, text = 'forward:b2,hq-1' WHERE text LIKE 'forward:b2%'");
    DatabaseOptions options;
    options.user_path = path();
    options.use_system = options.use_defaults = options.log_misses = false;
    TuningDatabase database = TuningDatabase::open(options);
    EXPECT_EQ(database.lookup(causal_1024(), database.device(device())).config.block_q, 64);
    EXPECT_THAT(database.layers()[0].note, HasSubstr("2 measurements of problems or configs that this build does not know"));
    int64_t unreadable = 0, readable = 0;
    Store store = open(StoreMode::read);
    EXPECT_TRUE(store.for_each([&](const MeasurementRow&) { return ++readable, Status(); }, &unreadable).ok());
    EXPECT_EQ(std::pair(readable, unreadable), std::pair(int64_t{1}, int64_t{2}));
}

TEST_F(OpenTest, a_schema_version_below_zero_is_named_and_not_looked_up) {
    make_sound();
    change(path(), "PRAGMA user_version = -2000000");
    for (const StoreMode mode : {StoreMode::read, StoreMode::write}) EXPECT_THAT(open_status(path(), mode).message(), HasSubstr("schema version -2000000, which there never was"));
}

TEST_F(OpenTest, a_lock_that_does_not_go_away_ends_the_wait) {
    make_sound();
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    Result<Store> store = Store::open(path(), StoreMode::write, 50);
    ASSERT_TRUE(store.ok()) << store.status().message();
    Result<MeasurementKey> key = store->put_key(causal_1024(), device(), toolchain());
    ASSERT_TRUE(key.ok());
    const Status status = store->add(*key, timed(50)).status();
    EXPECT_EQ(status.code(), StatusCode::unavailable);
    EXPECT_THAT(status.message(), HasSubstr("locked by another process"));
    EXPECT_EQ(store->measurements(*key)->size(), 1u) << "readers go on beside a writer";
    EXPECT_EQ(sqlite3_close(other), SQLITE_OK);
    EXPECT_TRUE(store->add(*key, timed(50)).ok());
}

TEST_F(OpenTest, local_files_use_write_ahead_logging) {
    EXPECT_EQ(open().info()->journal, "wal");
}

TEST_F(OpenTest, network_file_systems_are_told_from_local_ones) {
    for (const long network : {0x6969L, 0x517bL, 0xfe534d42L, 0xff534d42L, 0x65735546L, 0x0bd00bd0L, 0x01021997L}) {
        EXPECT_TRUE(is_network_file_system(network));
        EXPECT_TRUE(is_network_file_system(static_cast<int32_t>(network))) << "f_type is signed 32 bits on some machines";
    }
    for (const long local : {0xef53L, 0x58465342L, 0x01021994L, 0x9123683eL, 0x794c7630L}) EXPECT_FALSE(is_network_file_system(local));
    EXPECT_FALSE(is_on_network(path("not/there/yet.db")));
}

TEST_F(OpenTest, read_mode_leaves_the_file_and_its_time_alone) {
    make_sound();
    const auto before = std::filesystem::last_write_time(path());
    const std::string bytes = bytes_of(path());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(open(StoreMode::read).info()->measurements, 1);
    EXPECT_EQ(bytes_of(path()), bytes);
    EXPECT_EQ(std::filesystem::last_write_time(path()), before);
    Store store = open(StoreMode::read);
    EXPECT_FALSE(store.info()->writable);
    EXPECT_EQ(store.put_device(device("other")).status().code(), StatusCode::unavailable);
}

}  // namespace
}  // namespace tilewright
