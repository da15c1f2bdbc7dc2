// Lookups from many threads while files change under them.
#include <atomic>
#include <thread>

#include "db/fixtures.h"

namespace tilewright {
namespace {

using namespace testing;  // NOLINT: the fixtures are tilewright::testing

class ThreadsTest : public StoreTest {
protected:
    DatabaseOptions options() const {
        DatabaseOptions made;
        made.user_path = path();
        made.use_system = made.use_defaults = made.log_misses = false;
        return made;
    }

    static Problem length(int n) { return problem("forward:b1,hq8,sq" + std::to_string(n) + ",d64,fp32"); }
};

TEST_F(ThreadsTest, a_refresh_finds_what_was_stored_since_and_only_then_does_work) {
    Store store = open();
    add(store, timed(200, 64));
    TuningDatabase database = TuningDatabase::open(options());
    const int on = database.device(device());
    EXPECT_EQ(database.lookup(causal_1024(), on).config.block_q, 64);
    EXPECT_FALSE(database.refresh());
    add(store, timed(100, 128));
    EXPECT_EQ(database.lookup(causal_1024(), on).config.block_q, 64) << "tables do not change by themselves";
    EXPECT_TRUE(database.refresh());
    EXPECT_EQ(database.lookup(causal_1024(), on).config.block_q, 128);
    EXPECT_FALSE(database.refresh());
}

TEST_F(ThreadsTest, a_database_that_appears_later_is_found) {
    TuningDatabase database = TuningDatabase::open(options());
    const int on = database.device(device());
    EXPECT_EQ(database.lookup(causal_1024(), on).provenance, Provenance::heuristic);
    Store store = open();
    add(store, timed(100, 128));
    EXPECT_TRUE(database.refresh());
    EXPECT_EQ(database.lookup(causal_1024(), on).provenance, Provenance::exact);
}

TEST_F(ThreadsTest, a_file_that_turns_bad_leaves_lookups_answering) {
    {
        Store store = open();
        add(store, timed(100, 128));
    }
    TuningDatabase database = TuningDatabase::open(options());
    const int on = database.device(device());
    ASSERT_TRUE(write_file(path(), "this is no database any more, whatever it was before").ok());
    EXPECT_TRUE(database.refresh());
    EXPECT_EQ(database.lookup(causal_1024(), on).provenance, Provenance::heuristic);
    EXPECT_FALSE(database.layers()[0].status.ok());
}

TEST_F(ThreadsTest, a_watcher_refreshes_by_itself) {
    Store store = open();
    DatabaseOptions watching = options();
    watching.watch_interval_ms = 5;
    TuningDatabase database = TuningDatabase::open(watching);
    const int on = database.device(device());
    EXPECT_EQ(database.lookup(causal_1024(), on).provenance, Provenance::heuristic);
    add(store, timed(100, 128));
    for (int i = 0; i < 1000 && database.lookup(causal_1024(), on).provenance != Provenance::exact; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(database.lookup(causal_1024(), on).provenance, Provenance::exact) << database.layers()[0].status.message();
}

TEST_F(ThreadsTest, results_of_before_a_refresh_stay_readable) {
    Store store = open();
    add(store, timed(100, 128));
    TuningDatabase database = TuningDatabase::open(options());
    const LookupResult before = database.lookup(causal_1024(), database.device(device()));
    for (int i = 0; i < 5; ++i) {
        add(store, timed(90 - i, 64));
        EXPECT_TRUE(database.refresh());
    }
    EXPECT_EQ(before.problem, to_text(causal_1024()));
    EXPECT_EQ(before.device, "Test CPU");
}

TEST_F(ThreadsTest, more_problems_than_are_remembered_are_all_answered) {
    Store store = open();
    for (int n = 1; n <= 40; ++n) add(store, timed(10, n), length(n * 100));
    TuningDatabase database = TuningDatabase::open(options());
    const int on = database.device(device());
    for (int round = 0; round < 2; ++round) {
        for (int n = 1; n <= 4000; n += 1) {
            const LookupResult result = database.lookup(length(n), on);
            ASSERT_EQ(result.provenance == Provenance::exact, n % 100 == 0) << n;
            if (n % 100 == 0) {
                ASSERT_EQ(result.config.block_q, n / 100);
            }
        }
    }
}

// In each state of the file all winners carry one number: a reader that sees a mixture, or goes backwards, is wrong.
class ReadersTest : public ThreadsTest, public ::testing::WithParamInterface<int> {};

TEST_P(ReadersTest, readers_go_on_during_refreshes_and_never_see_an_older_state_again) {
    constexpr int problems = 8, generations = 12;
    Store store = open();
    const auto write_generation = [&](int generation) {
        std::vector<MeasurementRow> rows;
        for (int n = 1; n <= problems; ++n) rows.push_back({length(n * 64), device(), toolchain(), timed(1000.0 / generation, generation), true});
        EXPECT_TRUE(store.add_all(rows).ok());
    };
    write_generation(1);
    TuningDatabase database = TuningDatabase::open(options());
    const int on = database.device(device());
    std::vector<Problem> asked;
    for (int n = 1; n <= problems; ++n) asked.push_back(length(n * 64));
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::atomic<int64_t> answers{0};
    std::vector<std::thread> readers;
    for (int reader = 0; reader < GetParam(); ++reader) {
        readers.emplace_back([&] {
            int newest = 0;
            while (!stop.load()) {
                for (const Problem& one : asked) {
                    const LookupResult result = database.lookup(one, on);
                    wrong += result.provenance != Provenance::exact || result.config.block_q < newest || result.median_us != 1000.0 / result.config.block_q;
                    newest = std::max(newest, result.config.block_q);
                    ++answers;
                }
            }
        });
    }
    for (int generation = 2; generation <= generations; ++generation) {
        write_generation(generation);
        EXPECT_TRUE(database.refresh());
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    stop = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_GT(answers.load(), 0);
    EXPECT_EQ(database.lookup(asked[0], on).config.block_q, generations);
}

INSTANTIATE_TEST_SUITE_P(Threads, ReadersTest, ::testing::Values(1, 2, 8));

}  // namespace
}  // namespace tilewright
