// What lookups answer: exact, nearest, family, fallback; layers; limits; stale rows; misses.
#include <gmock/gmock.h>

#include "db/lookup_fixture.h"

namespace tilewright {
namespace {

using namespace testing;  // NOLINT: the fixtures are tilewright::testing
using ::testing::HasSubstr;

TEST_F(LookupTest, a_measured_problem_is_exact_and_says_where_from) {
    Store store = open();
    add(store, timed(300, 64, 5000));
    add(store, timed(200, 128, 6000));
    TuningDatabase database = TuningDatabase::open(options());
    const LookupResult result = database.lookup(causal_1024(), database.device(device()));
    EXPECT_EQ(result.provenance, Provenance::exact);
    EXPECT_EQ(result.config.block_q, 128);
    EXPECT_EQ(result.problem, to_text(causal_1024()));
    EXPECT_EQ(result.device, "Test CPU");
    EXPECT_EQ(result.database, path());
    EXPECT_EQ(result.median_us, 200);
    EXPECT_NEAR(result.spread, 0.02, 1e-6);
    EXPECT_EQ(result.measured_at, 6000);
    EXPECT_EQ(std::pair(result.distance, result.differences), std::pair(0.0, 0U));
    EXPECT_THAT(describe(result, 6000 + 3 * 86400), HasSubstr("exact: measured for forward:b1,hq8,hkv2,sq1024,skv1024,d64,fp32,causal on Test CPU, 200 us, spread 2.0 %, 3 days ago"));
}

TEST_F(LookupTest, a_length_of_1100_takes_the_winner_of_1024_as_nearest) {
    Store store = open();
    add(store, timed(200, 128));
    TuningDatabase database = TuningDatabase::open(options());
    const LookupResult result = database.lookup(problem("forward:b1,hq8,hkv2,sq1100,d64,fp32,causal"), database.device(device()));
    EXPECT_EQ(result.provenance, Provenance::nearest);
    EXPECT_EQ(result.config.block_q, 128);
    EXPECT_EQ(result.problem, to_text(causal_1024()));
    EXPECT_EQ(result.differences, differs_seq_q | differs_seq_kv);
    EXPECT_GT(result.distance, 0.1);
    EXPECT_LT(result.distance, 0.3);
    EXPECT_THAT(describe(result, 0), HasSubstr("(seq_q, seq_kv)"));
}

TEST_F(LookupTest, no_size_of_another_kind_is_near) {
    Store store = open();
    add(store, timed(200, 128));
    for (const char* other : {"forward:b1,hq8,hkv2,sq1024,d64,bf16,causal", "forward:b1,hq8,hkv2,sq1024,d64,fp32", "forward:b1,hq8,hkv2,sq1024,d128,fp32,causal",
                              "forward:b1,hq8,hkv2,sq1024,d64,dv32,fp32,causal", "backward:b1,hq8,hkv2,sq1024,d64,fp32,causal",
                              "forward:b1,hq8,hkv2,sq1024,d64,fp32,causal,sink", "forward:b1,hq8,hkv2,sq1024,d64,fp32,causal,topleft",
                              "forward:b1,hq8,hkv2,sq1024,d64,fp32,window100:0"}) {
        EXPECT_EQ(ask(other).provenance, Provenance::heuristic) << other;
    }
}

TEST_F(LookupTest, of_two_lengths_the_nearer_one_in_doublings_is_taken) {
    Store store = open();
    add(store, timed(10, 16), problem("forward:b1,hq8,sq256,d64,fp32"));
    add(store, timed(1000, 128), problem("forward:b1,hq8,sq4096,d64,fp32"));
    EXPECT_EQ(ask("forward:b1,hq8,sq600,d64,fp32").config.block_q, 16);
    EXPECT_EQ(ask("forward:b1,hq8,sq2000,d64,fp32").config.block_q, 128);
}

TEST_F(LookupTest, how_full_the_machine_is_counts_beside_the_lengths) {
    // One head of 1024 rows is 8 blocks on 100 units; a batch of 64 such fills them. The lengths are equal.
    Store store = open();
    const DeviceClass gpu = device("GPU", 100);
    add(store, timed(10, 16), problem("forward:b1,hq1,sq1024,d64,bf16"), toolchain(), gpu);
    add(store, timed(100, 128), problem("forward:b64,hq1,sq1024,d64,bf16"), toolchain(), gpu);
    EXPECT_EQ(ask("forward:b2,hq1,sq1024,d64,bf16", gpu).config.block_q, 16);
    EXPECT_EQ(ask("forward:b1,hq32,sq1024,d64,bf16", gpu).config.block_q, 128);
    // Nearer to the first by length, to the second by how full the machine is.
    add(store, timed(200, 64), problem("forward:b64,hq1,sq2048,d128,bf16"), toolchain(), gpu);
    add(store, timed(10, 32), problem("forward:b1,hq1,sq1024,d128,bf16"), toolchain(), gpu);
    EXPECT_EQ(ask("forward:b64,hq1,sq1200,d128,bf16", gpu).config.block_q, 64);
}

TEST_F(LookupTest, what_is_too_far_is_left_to_the_model) {
    Store store = open();
    add(store, timed(10, 16), problem("forward:b1,hq1,sq16,d64,bf16"));
    DatabaseOptions with = options();
    with.hooks.suggest = suggest_32;
    const LookupResult result = ask(with, "forward:b8,hq32,sq8192,d64,bf16");
    EXPECT_EQ(result.provenance, Provenance::predicted);
    EXPECT_EQ(result.config.block_q, 32);
    EXPECT_EQ(result.median_us, 77);
}

TEST_F(LookupTest, above_the_largest_length_the_trend_decides_and_not_the_last_winner) {
    Store store = open();
    const auto length = [](int n) { return problem("forward:b1,hq8,sq" + std::to_string(n) + ",d64,fp32"); };
    // block_q 64 wins at both lengths, 128 grows more slowly: 100 -> 395 against 115 -> 400.
    for (const auto& [n, block_q, us] : {std::tuple{2048, 64, 100.}, {2048, 128, 115.}, {4096, 64, 395.}, {4096, 128, 400.}}) {
        add(store, timed(us, block_q), length(n));
    }
    EXPECT_EQ(ask("forward:b1,hq8,sq4096,d64,fp32").config.block_q, 64);
    EXPECT_EQ(ask("forward:b1,hq8,sq3900,d64,fp32").config.block_q, 64);
    const LookupResult longer = ask("forward:b1,hq8,sq16384,d64,fp32");
    EXPECT_EQ(longer.provenance, Provenance::nearest);
    EXPECT_EQ(longer.config.block_q, 128);
    // However long: more of the same.
    EXPECT_EQ(ask("forward:b1,hq8,sq1048576,d64,fp32").provenance, Provenance::nearest);
}

TEST_F(LookupTest, another_device_of_the_arch_and_then_of_the_family_stands_in) {
    Store store = open();
    const DeviceClass h100{"nvidia", "sm_90a", "hopper", "H100", 132}, h200{"nvidia", "sm_90a", "hopper", "H200", 132};
    const DeviceClass mi250{"amd", "gfx90a", "cdna", "MI250X", 110}, mi300{"amd", "gfx942", "cdna", "MI300X", 304};
    add(store, timed(10, 16), causal_1024(), toolchain(), h100);
    add(store, timed(10, 48), causal_1024(), toolchain(), mi250);
    const LookupResult same_arch = ask("forward:b1,hq8,hkv2,sq1024,d64,fp32,causal", h200);
    EXPECT_EQ(same_arch.provenance, Provenance::family);
    EXPECT_EQ(same_arch.config.block_q, 16);
    EXPECT_EQ(same_arch.differences, differs_device);
    const LookupResult same_family = ask("forward:b1,hq8,hkv2,sq1024,d64,fp32,causal", mi300);
    EXPECT_EQ(same_family.provenance, Provenance::family);
    EXPECT_EQ(same_family.config.block_q, 48);
    EXPECT_EQ(same_family.differences, differs_arch);
    EXPECT_EQ(ask("forward:b1,hq8,hkv2,sq1024,d64,fp32,causal", {"nvidia", "sm_80", "ampere", "A100", 108}).provenance, Provenance::heuristic);
}

TEST_F(LookupTest, a_row_that_is_not_legal_today_is_skipped_and_reported_once) {
    Store store = open();
    add(store, timed(100, 256));
    add(store, timed(200, 128));
    DatabaseOptions with = options();
    with.log_misses = false;
    with.hooks.check = [](const Problem&, const DeviceClass&, const Config& config, const LookupLimits&) {
        return config.block_q > 128 ? invalid_argument("block_q 256 is over 128") : Status();
    };
    TuningDatabase database = TuningDatabase::open(with);
    const int on = database.device(device());
    for (int i = 0; i < 3; ++i) {
        const LookupResult result = database.lookup(causal_1024(), on);
        EXPECT_EQ(result.provenance, Provenance::exact);
        EXPECT_EQ(result.config.block_q, 128);
    }
    (void)database.lookup(problem("forward:b1,hq8,hkv2,sq1100,d64,fp32,causal"), on);
    EXPECT_EQ(database.stale_count(), 1);
    ASSERT_EQ(database.stale_rows().size(), 1u);
    EXPECT_THAT(database.stale_rows()[0], HasSubstr("block_q 256 is over 128"));
}

TEST_F(LookupTest, with_every_row_stale_the_model_answers) {
    Store store = open();
    add(store, timed(100, 256));
    DatabaseOptions with = options();
    with.hooks.check = [](const Problem&, const DeviceClass&, const Config&, const LookupLimits&) { return invalid_argument("no"); };
    with.hooks.suggest = suggest_32;
    EXPECT_EQ(ask(with, to_text(causal_1024())).provenance, Provenance::predicted);
}

TEST_F(LookupTest, a_config_that_suits_its_own_problem_only_is_not_stale) {
    Store store = open();
    add(store, timed(100, 256));
    DatabaseOptions with = options();
    with.hooks.check = [](const Problem& asked, const DeviceClass&, const Config&, const LookupLimits&) {
        return asked.seq_q == 1024 ? Status() : invalid_argument("only for 1024");
    };
    TuningDatabase database = TuningDatabase::open(with);
    EXPECT_EQ(database.lookup(problem("forward:b1,hq8,hkv2,sq1100,d64,fp32,causal"), database.device(device())).provenance, Provenance::heuristic);
    EXPECT_EQ(database.stale_count(), 0);
}

TEST_F(LookupTest, the_user_database_comes_before_system_databases_and_these_in_their_order) {
    for (const auto& [file, block_q] : {std::pair{"t.db", 16}, {"a.db", 32}, {"b.db", 64}}) {
        Store store = open(StoreMode::create, file);
        add(store, timed(1000.0 / block_q, block_q));
    }
    DatabaseOptions with = options();
    with.use_system = true;
    with.system_paths = {path("a.db"), path("b.db")};
    EXPECT_EQ(ask(with, to_text(causal_1024())).config.block_q, 16);
    with.use_user = false;
    EXPECT_EQ(ask(with, to_text(causal_1024())).config.block_q, 32);
    with.system_paths = {path("b.db"), path("a.db")};
    EXPECT_EQ(ask(with, to_text(causal_1024())).config.block_q, 64);
}

TEST_F(LookupTest, an_exact_row_of_a_system_database_comes_before_a_near_one_of_the_user) {
    Store user = open();
    add(user, timed(100, 16), problem("forward:b1,hq8,hkv2,sq1000,d64,fp32,causal"));
    Store system = open(StoreMode::create, "a.db");
    add(system, timed(100, 32));
    DatabaseOptions with = options();
    with.use_system = true;
    with.system_paths = {path("a.db")};
    EXPECT_EQ(ask(with, to_text(causal_1024())).config.block_q, 32);
}

TEST_F(LookupTest, what_was_missed_is_remembered_in_the_user_database) {
    const std::string text = to_text(causal_1024());
    {
        TuningDatabase database = TuningDatabase::open(options());
        for (int i = 0; i < 5; ++i) (void)database.lookup(causal_1024(), database.device(device()));
    }
    Store store = open(StoreMode::read);
    Result<std::vector<Miss>> misses = store.misses();
    ASSERT_TRUE(misses.ok());
    ASSERT_EQ(misses->size(), 1u);
    EXPECT_EQ(misses->front().problem, text);
    EXPECT_EQ(misses->front().device, device());
    EXPECT_EQ(misses->front().count, 1);
}

TEST_F(LookupTest, exact_answers_and_switched_off_logs_leave_no_misses) {
    {
        Store store = open();
        add(store, timed(100));
    }
    (void)ask("forward:b1,hq1,sq1,d64,fp32");  // ask() switches the log off
    {
        TuningDatabase database = TuningDatabase::open(options());
        (void)database.lookup(causal_1024(), database.device(device()));
    }
    EXPECT_EQ(open(StoreMode::read).misses()->size(), 0u);
}

TEST_F(LookupTest, provenances_keep_their_numbers_and_names) {
    const std::vector<std::pair<int, std::string>> frozen = {{1, "exact"}, {2, "nearest"}, {3, "family"}, {4, "predicted"}, {5, "heuristic"}};
    for (const auto& [number, text] : frozen) EXPECT_EQ(name(static_cast<Provenance>(number)), text);
}

}  // namespace
}  // namespace tilewright
