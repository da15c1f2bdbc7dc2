// Storing measurements and getting them back.
#include "db/fixtures.h"

#include <gmock/gmock.h>

namespace tilewright {
namespace {

using namespace testing;  // NOLINT: the fixtures are tilewright::testing
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

TEST_F(StoreTest, what_was_added_is_there_after_reopening) {
    Measurement sent = timed(812.5, 128);
    sent.clock_mhz = 3000;
    sent.memory_clock_mhz = 1200;
    sent.temperature_c = 55.5;
    sent.exclusive = 1;
    sent.driver = "none";
    sent.host = "here";
    sent.note = "a 'quoted' note; DROP TABLE measurement";
    {
        Store store = open();
        sent.id = add(store, sent);
    }
    Store store = open(StoreMode::read);
    Result<MeasurementKey> key = open(StoreMode::write).put_key(causal_1024(), device(), toolchain());
    ASSERT_TRUE(key.ok());
    Result<std::vector<Measurement>> got = store.measurements(*key);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_EQ(got->size(), 1u);
    const Measurement& one = got->front();
    EXPECT_EQ(one.id, sent.id);
    EXPECT_EQ(one.config, sent.config);
    EXPECT_EQ(one.outcome, Outcome::correct);
    EXPECT_EQ(std::tuple(one.median_us, one.p20_us, one.p80_us, one.samples, one.error),
              std::tuple(sent.median_us, sent.p20_us, sent.p80_us, sent.samples, sent.error));
    EXPECT_EQ(std::tuple(one.clock_mhz, one.memory_clock_mhz, one.temperature_c, one.exclusive),
              std::tuple(sent.clock_mhz, sent.memory_clock_mhz, sent.temperature_c, sent.exclusive));
    EXPECT_EQ(std::tuple(one.driver, one.host, one.measured_at, one.note), std::tuple(sent.driver, sent.host, sent.measured_at, sent.note));
}

TEST_F(StoreTest, problems_keep_their_pages_lengths_and_packing) {
    Store store = open();
    const std::vector<std::string> texts = {"decode:b32,hq32,hkv8,sq1,skv=loguniform(128,32768),d128,bf16,page16,seed7",
                                            "forward:b8,hq4,hkv2,sq=loguniform(3,90),skv=loguniform(5,70),d64,bf16,causal,packed,seed2", "forward:b8,hq4,hkv2,sq90,skv70,d64,bf16,packed"};
    for (const std::string& text : texts) add(store, timed(100), *parse_problem(text));
    std::vector<std::string> found;
    ASSERT_TRUE(store.for_each_best([&](const MeasurementRow& row) {
                         found.push_back(to_text(row.problem));
                         EXPECT_EQ(row.problem, *parse_problem(found.back()));
                         return Status();
                     }, nullptr).ok());
    EXPECT_THAT(found, UnorderedElementsAreArray(texts));
    for (const std::string& text : texts) EXPECT_TRUE(store.best(*parse_problem(text), device()).ok());
}

TEST_F(StoreTest, equal_things_share_a_row) {
    Store store = open();
    for (int i = 0; i < 3; ++i) add(store, timed(100 + i));
    Result<StoreInfo> info = store.info();
    ASSERT_TRUE(info.ok()) << info.status().message();
    EXPECT_EQ(std::tuple(info->devices, info->toolchains, info->problems, info->configs, info->measurements, info->winners),
              std::tuple(1, 1, 1, 1, 3, 1));
    EXPECT_EQ(info->schema, 7);
    EXPECT_TRUE(info->writable);
}

TEST_F(StoreTest, the_winner_is_the_lowest_median_among_correct_rows) {
    Store store = open();
    add(store, timed(300, 64));
    add(store, timed(200, 128));
    Measurement wrong = timed(100, 256);
    wrong.outcome = Outcome::correctness;
    add(store, wrong);
    Result<Measurement> best = store.best(causal_1024(), device());
    ASSERT_TRUE(best.ok()) << best.status().message();
    EXPECT_EQ(best->config.block_q, 128);
    EXPECT_EQ(best->median_us, 200);
}

TEST_F(StoreTest, a_newer_toolchain_wins_once_it_has_a_correct_row_and_not_before) {
    Store store = open();
    add(store, timed(200, 64, 1000), causal_1024(), toolchain("old"));
    Measurement failed = timed(0, 32, 2000);
    failed.outcome = Outcome::compile;
    failed.p20_us = failed.p80_us = 0;
    add(store, failed, causal_1024(), toolchain("new"));
    EXPECT_EQ(store.best(causal_1024(), device())->config.block_q, 64);
    add(store, timed(250, 128, 3000), causal_1024(), toolchain("new"));
    EXPECT_EQ(store.best(causal_1024(), device())->config.block_q, 128);
}

TEST_F(StoreTest, the_first_place_of_the_latest_race_wins_over_times_taken_alone) {
    Store store = open();
    const auto raced = [](double median_us, int block_q, int64_t race, int place) {
        Measurement m = timed(median_us, block_q);
        m.race = race;
        m.place = place;
        return m;
    };
    add(store, timed(80, 16));
    EXPECT_EQ(store.best(causal_1024(), device())->config.block_q, 16);
    add(store, raced(90, 32, 500, 1));
    add(store, raced(95, 16, 500, 2));
    EXPECT_EQ(store.best(causal_1024(), device())->config.block_q, 32);
    // A tie that was settled for the slower one, in a later race.
    add(store, raced(91, 64, 600, 1));
    add(store, raced(90.5, 32, 600, 2));
    add(store, timed(70, 128));
    EXPECT_EQ(store.best(causal_1024(), device())->config.block_q, 64);
    EXPECT_FALSE(store.add(*store.put_key(causal_1024(), device(), toolchain()), raced(90, 32, 500, 0)).ok()) << "a race without a place";
}

TEST_F(StoreTest, devices_do_not_share_winners) {
    Store store = open();
    add(store, timed(200), causal_1024(), toolchain(), device("one"));
    EXPECT_EQ(store.best(causal_1024(), device("two")).status().code(), StatusCode::not_found);
    EXPECT_EQ(store.best(causal_1024(), device("one", 3)).status().code(), StatusCode::not_found);
}

TEST_F(StoreTest, rows_come_with_everything_they_hang_on) {
    Store store = open();
    const Problem other = problem("backward:b2,hq4,hkv4,sq100,skv200,d40,dv72,bf16,window128:3,topleft,softcap,bias,alibi,sink");
    add(store, timed(200, 64, 1000), other, toolchain("old"), device("one", 7));
    add(store, timed(300, 64, 2000), other, toolchain("new"), device("one", 7));
    std::vector<MeasurementRow> rows;
    ASSERT_TRUE(store.for_each([&](const MeasurementRow& row) { return rows.push_back(row), Status(); }).ok());
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].problem, other);
    EXPECT_EQ(rows[0].device, device("one", 7));
    EXPECT_EQ(rows[0].toolchain, toolchain("old"));
    EXPECT_FALSE(rows[0].newest_toolchain);
    EXPECT_TRUE(rows[1].newest_toolchain);
    std::vector<MeasurementRow> best;
    ASSERT_TRUE(store.for_each_best([&](const MeasurementRow& row) { return best.push_back(row), Status(); }).ok());
    ASSERT_EQ(best.size(), 1u);
    EXPECT_EQ(best[0].measurement.median_us, 300);
}

TEST_F(StoreTest, several_rows_are_stored_together_or_not_at_all) {
    Store store = open();
    MeasurementRow good{causal_1024(), device(), toolchain(), timed(100), true};
    MeasurementRow bad = good;
    bad.measurement.median_us = -1;
    EXPECT_FALSE(store.add_all({good, bad}).ok());
    EXPECT_EQ(store.info()->measurements, 0);
    EXPECT_TRUE(store.add_all({good, good}).ok());
    EXPECT_EQ(store.info()->measurements, 2);
}

TEST_F(StoreTest, impossible_measurements_are_refused_and_named) {
    Store store = open();
    Result<MeasurementKey> key = store.put_key(causal_1024(), device(), toolchain());
    ASSERT_TRUE(key.ok());
    auto refusal = [&](auto change) {
        Measurement measurement = timed(100);
        change(measurement);
        return store.add(*key, measurement).status().message();
    };
    EXPECT_THAT(refusal([](Measurement& m) { m.median_us = -5; }), HasSubstr("-5"));
    EXPECT_THAT(refusal([](Measurement& m) { m.median_us = std::nan(""); }), HasSubstr("nan"));
    EXPECT_THAT(refusal([](Measurement& m) { m.median_us = 1e300; }), HasSubstr("3.6e9"));
    EXPECT_THAT(refusal([](Measurement& m) { m.median_us = 0; }), HasSubstr("above 0"));
    EXPECT_THAT(refusal([](Measurement& m) { m.p20_us = 101.5, m.p80_us = 101; }), HasSubstr("p20"));
    EXPECT_THAT(refusal([](Measurement& m) { m.outcome = static_cast<Outcome>(99); }), HasSubstr("99"));
    EXPECT_EQ(store.info()->measurements, 0);
}

TEST_F(StoreTest, a_key_that_names_no_row_is_refused) {
    Store store = open();
    EXPECT_EQ(store.add({7, 8, 9}, timed(100)).status().code(), StatusCode::invalid_argument);
}

TEST_F(StoreTest, misses_are_counted_and_forgotten_when_tuned) {
    Store store = open();
    const std::string text = to_text(causal_1024());
    ASSERT_TRUE(store.add_misses({{text, device(), 2, 100}, {"other", device(), 1, 90}}).ok());
    ASSERT_TRUE(store.add_misses({{text, device(), 3, 110}}).ok());
    Result<std::vector<Miss>> misses = store.misses();
    ASSERT_TRUE(misses.ok());
    ASSERT_EQ(misses->size(), 2u);
    EXPECT_EQ(std::tuple(misses->front().problem, misses->front().count, misses->front().last_asked_at), std::tuple(text, 5, 110));
    EXPECT_EQ(misses->front().device, device());
    ASSERT_TRUE(store.clear_miss(text, device()).ok());
    EXPECT_EQ(store.misses()->size(), 1u);
}

TEST_F(StoreTest, the_list_of_misses_is_bounded_and_the_longest_unasked_leave_first) {
    Store store = open();
    std::vector<Miss> many;
    for (int i = 0; i < 10500; ++i) many.push_back({"p" + std::to_string(i), device(), 1, 1000 + i});
    ASSERT_TRUE(store.add_misses(many).ok());
    Result<std::vector<Miss>> misses = store.misses();
    ASSERT_EQ(misses->size(), 10000u);
    EXPECT_EQ(misses->front().problem, "p10499");
    EXPECT_EQ(misses->back().problem, "p500");
}

TEST_F(StoreTest, the_change_counter_tells_of_other_writers) {
    Store reader = open();
    const int64_t before = *reader.change_counter();
    EXPECT_EQ(*reader.change_counter(), before);
    Store writer = open();
    add(writer, timed(100));
    EXPECT_NE(*reader.change_counter(), before);
}

TEST_F(StoreTest, outcomes_keep_their_numbers_and_names) {
    const std::vector<std::pair<int, std::string>> frozen = {{1, "correct"},     {2, "constraints"}, {3, "compile"},   {4, "runtime"},
                                                             {5, "correctness"}, {6, "timeout"},     {7, "predicted"}, {8, "imported"}};
    for (const auto& [number, text] : frozen) {
        EXPECT_EQ(name(static_cast<Outcome>(number)), text);
        EXPECT_EQ(static_cast<int>(*parse_outcome(text)), number);
    }
    EXPECT_FALSE(parse_outcome("").ok());
}

}  // namespace
}  // namespace tilewright
