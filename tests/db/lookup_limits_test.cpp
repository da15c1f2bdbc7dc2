// What a caller asks of a config beyond being fast, and what is answered where nothing was measured.
#include <gmock/gmock.h>

#include "db/lookup_fixture.h"

namespace tilewright {
namespace {

using namespace testing;  // NOLINT: the fixtures are tilewright::testing
using ::testing::HasSubstr;

using LookupLimitsTest = LookupTest;

TEST_F(LookupLimitsTest, a_limit_on_the_error_takes_the_fastest_config_within_it) {
    Store store = open();
    Measurement fast = timed(100, 256), accurate = timed(200, 128), unknown = timed(50, 64);
    fast.error = 1e-3;
    accurate.error = 1e-5;
    unknown.error = -1;
    for (const Measurement& m : {fast, accurate, unknown}) add(store, m);
    LookupLimits limits;
    EXPECT_EQ(ask(options(), to_text(causal_1024()), device(), limits).config.block_q, 64);
    limits.max_error = 1e-2;
    EXPECT_EQ(ask(options(), to_text(causal_1024()), device(), limits).config.block_q, 256);
    limits.max_error = 1e-4;
    EXPECT_EQ(ask(options(), to_text(causal_1024()), device(), limits).config.block_q, 128);
    limits.max_error = 1e-6;
    EXPECT_EQ(ask(options(), to_text(causal_1024()), device(), limits).provenance, Provenance::heuristic);
}

TEST_F(LookupLimitsTest, limits_reach_the_hooks_and_are_part_of_the_question) {
    Store store = open();
    add(store, timed(100, 256));
    add(store, timed(200, 128));
    DatabaseOptions with = options();
    with.hooks.check = [](const Problem&, const DeviceClass&, const Config& config, const LookupLimits& limits) {
        return limits.deterministic && config.block_q == 256 ? invalid_argument("not repeatable") : Status();
    };
    TuningDatabase database = TuningDatabase::open(with);
    const int on = database.device(device());
    LookupLimits deterministic;
    deterministic.deterministic = true;
    EXPECT_EQ(database.lookup(causal_1024(), on).config.block_q, 256);
    EXPECT_EQ(database.lookup(causal_1024(), on, deterministic).config.block_q, 128);
    EXPECT_EQ(database.lookup(causal_1024(), on).config.block_q, 256);
    EXPECT_EQ(database.stale_count(), 0);
}

// As the runtime's: sums in any order are not repeatable.
Status check_order(const Problem& problem, const DeviceClass&, const Config& with, const LookupLimits&) {
    return problem.deterministic && with.dq == 1 ? invalid_argument("in any order") : Status();
}

Measurement backward_timed(double us, int dq) {
    Measurement made = timed(us);
    made.config.dq = dq;
    return made;
}

TEST_F(LookupLimitsTest, a_repeatable_backward_is_a_problem_of_its_own_whose_neighbour_is_the_other) {
    const std::string any = "backward:b1,hq8,sq1024,d64,bf16", repeatable = any + ",deterministic";
    Store store = open();
    add(store, backward_timed(100, 1), problem(any));
    add(store, backward_timed(130, 0), problem(any));
    DatabaseOptions with = options();
    with.hooks.check = check_order;
    LookupLimits limits;
    limits.deterministic = true;
    EXPECT_EQ(ask(with, any).config.dq, 1);
    for (const LookupResult& near : {ask(with, repeatable), ask(with, any, device(), limits), ask(with, repeatable, device(), limits)}) {
        EXPECT_EQ(near.provenance, Provenance::nearest) << "it was measured, but not as the best of its kind";
        EXPECT_EQ(std::pair(near.distance, near.differences), std::pair(0.0, unsigned{differs_deterministic}));
        EXPECT_EQ(near.config.dq, 0);
    }
    add(store, backward_timed(110, 2), problem(repeatable));
    for (const LookupResult& own : {ask(with, repeatable), ask(with, any, device(), limits)}) {
        EXPECT_EQ(own.provenance, Provenance::exact);
        EXPECT_EQ(own.config.dq, 2);
    }
    EXPECT_EQ(ask(with, any).config.dq, 1);
}

TEST_F(LookupLimitsTest, a_repeatable_config_serves_who_does_not_ask_for_one) {
    Store store = open();
    add(store, backward_timed(110, 2), problem("backward:b1,hq8,sq1024,d64,bf16,deterministic"));
    const LookupResult found = ask("backward:b1,hq8,sq1024,d64,bf16");
    EXPECT_EQ(found.provenance, Provenance::nearest);
    EXPECT_EQ(found.config.dq, 2);
}

TEST_F(LookupLimitsTest, what_was_missed_under_limits_is_remembered_as_the_repeatable_problem) {
    LookupLimits limits;
    limits.deterministic = true;
    {
        TuningDatabase database = TuningDatabase::open(options());
        (void)database.lookup(problem("backward:sq9"), database.device(device()), limits);
        (void)database.lookup(problem("forward:sq9"), database.device(device()), limits);
    }
    const Result<std::vector<Miss>> misses = open(StoreMode::read).misses();
    ASSERT_TRUE(misses.ok());
    std::vector<std::string> texts;
    for (const Miss& miss : *misses) texts.push_back(miss.problem);
    EXPECT_THAT(texts, ::testing::UnorderedElementsAre(to_text(problem("backward:sq9,deterministic")), to_text(problem("forward:sq9"))));
}

Measurement predicted(double us, int block_q, int64_t at = 1000) {
    Measurement made = timed(us, block_q, at);
    made.outcome = Outcome::predicted;
    made.p20_us = made.p80_us = made.median_us;
    made.error = -1;
    return made;
}

class PredictionTest : public LookupTest {
protected:
    // As `tune --predict` names what it has: an architecture, no device.
    const DeviceClass predicted_on{"amd", "gfx942", "cdna", "no device: predicted", 304}, mi300{"amd", "gfx942", "cdna", "MI300X", 304};
    DatabaseOptions with_model() const {
        DatabaseOptions with = options();
        with.hooks.suggest = suggest_32;
        return with;
    }
};

TEST_F(PredictionTest, where_nothing_measured_is_near_the_shortest_stored_prediction_comes_before_the_models_word) {
    {
        Store store = open();
        add(store, predicted(90, 128, 5000), causal_1024(), toolchain(), predicted_on);
        add(store, predicted(80, 256, 6000), causal_1024(), toolchain(), predicted_on);
    }
    TuningDatabase database = TuningDatabase::open(with_model());
    ASSERT_EQ(database.layers().size(), 1u);
    EXPECT_EQ(std::pair(database.layers()[0].rows, database.layers()[0].predictions), std::pair(int64_t{0}, int64_t{1}));
    const LookupResult found = database.lookup(causal_1024(), database.device(mi300));
    EXPECT_EQ(found.provenance, Provenance::predicted);
    EXPECT_EQ(std::tuple(found.config.block_q, found.median_us, found.measured_at), std::tuple(256, 80.0, int64_t{6000}));
    EXPECT_EQ(found.problem, "") << "nothing was measured";
    EXPECT_EQ(found.database, path());
    EXPECT_THAT(describe(found, 6000 + 3 * 86400), HasSubstr("predicted: nothing measured is near; the model said 80 us, 3 days ago, from " + path()));
    // Of another size or on another architecture it says nothing.
    EXPECT_EQ(database.lookup(problem("forward:b1,hq8,hkv2,sq1025,d64,fp32,causal"), database.device(mi300)).config.block_q, 32);
    EXPECT_EQ(database.lookup(causal_1024(), database.device({"amd", "gfx90a", "cdna", "MI250X", 110})).config.block_q, 32);
}

TEST_F(PredictionTest, anything_measured_near_comes_before_a_prediction) {
    {
        Store store = open();
        add(store, predicted(80, 256), causal_1024(), toolchain(), predicted_on);
        add(store, timed(500, 64), problem("forward:b1,hq8,hkv2,sq2048,d64,fp32,causal"), toolchain(), mi300);
    }
    EXPECT_EQ(ask(with_model(), to_text(causal_1024()), mi300).provenance, Provenance::nearest);
}

TEST_F(PredictionTest, a_prediction_that_is_not_legal_today_is_skipped_for_the_next) {
    {
        Store store = open();
        for (int block_q : {64, 128, 256}) add(store, predicted(1000.0 / block_q, block_q), causal_1024(), toolchain(), predicted_on);
    }
    DatabaseOptions with = with_model();
    with.hooks.check = [](const Problem&, const DeviceClass&, const Config& c, const LookupLimits&) { return c.block_q > 128 ? invalid_argument("too large") : Status(); };
    EXPECT_EQ(ask(with, to_text(causal_1024()), mi300).config.block_q, 128);
    with.hooks.check = [](const Problem&, const DeviceClass&, const Config&, const LookupLimits&) { return invalid_argument("none"); };
    EXPECT_EQ(ask(with, to_text(causal_1024()), mi300).config.block_q, 32);
}

TEST_F(PredictionTest, the_first_layers_prediction_counts_and_a_later_kernels_replaces_an_earlier_ones) {
    {
        Store user = open(), system = open(StoreMode::create, "a.db");
        add(user, predicted(50, 128, 1000), causal_1024(), toolchain("old"), predicted_on);
        add(user, predicted(90, 64, 9000), causal_1024(), toolchain("new"), predicted_on);
        add(system, predicted(10, 256), causal_1024(), toolchain(), predicted_on);
    }
    DatabaseOptions with = with_model();
    with.use_system = true;
    with.system_paths = {path("a.db")};
    EXPECT_EQ(ask(with, to_text(causal_1024()), mi300).config.block_q, 64);
    with.use_user = false;
    EXPECT_EQ(ask(with, to_text(causal_1024()), mi300).config.block_q, 256);
}

}  // namespace
}  // namespace tilewright
