// merge, prune, diff and check.
#include <gmock/gmock.h>

#include <filesystem>

#include "db/fixtures.h"
#include "db/tools/check.h"
#include "db/tools/merge.h"

namespace tilewright {
namespace {

using namespace testing;  // NOLINT: the fixtures are tilewright::testing
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ToolsTest : public StoreTest {
protected:
    // The one measurement that is left of `a` in one file and `b` in another.
    Measurement merged(const Measurement& a, const Measurement& b, MergeReport* report = nullptr) {
        for (const char* file : {"a.db", "b.db", "c.db"}) std::filesystem::remove(path(file));
        for (const auto& [file, measurement] : {std::pair{"a.db", &a}, {"b.db", &b}}) {
            Store store = open(StoreMode::create, file);
            add(store, *measurement);
        }
        const Result<MergeReport> made = merge_databases({path("a.db"), path("b.db")}, path("c.db"));
        EXPECT_TRUE(made.ok()) << made.status().message();
        if (report && made.ok()) *report = *made;
        std::vector<Measurement> found;
        EXPECT_TRUE(open(StoreMode::read, "c.db").for_each([&](const MeasurementRow& row) { return found.push_back(row.measurement), Status(); }).ok());
        EXPECT_EQ(found.size(), 1u);
        return found.empty() ? Measurement{} : found.front();
    }

    std::vector<std::string> findings(const CheckHooks& hooks = {}) {
        Store store = open(StoreMode::read);
        const Result<std::vector<Finding>> found = check_database(store, 1000000, hooks);
        EXPECT_TRUE(found.ok()) << found.status().message();
        std::vector<std::string> texts;
        if (found.ok()) {
            for (const Finding& finding : *found) texts.push_back(std::string(name(finding.kind)) + ": " + finding.text);
        }
        return texts;
    }
};

TEST_F(ToolsTest, merging_keeps_every_candidate_once_and_toolchains_apart) {
    for (const auto& [file, block_q] : {std::pair{"a.db", 16}, {"b.db", 32}}) {
        Store store = open(StoreMode::create, file);
        add(store, timed(100, block_q));
        add(store, timed(100, 64), causal_1024(), toolchain(file));
        add(store, timed(100, 48), problem("forward:sq7"), toolchain(), device("other"));
    }
    const Result<MergeReport> report = merge_databases({path("a.db"), path("b.db")}, path("c.db"));
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(std::tuple(report->rows, report->repeated, report->unreadable), std::tuple(5, 1, 0));
    EXPECT_THAT(report->conflicts, IsEmpty());
    Store merged = open(StoreMode::read, "c.db");
    EXPECT_EQ(std::tuple(merged.info()->measurements, merged.info()->toolchains, merged.info()->devices), std::tuple(5, 3, 2));
    EXPECT_EQ(merged.info()->journal, "delete") << "one plain file, fit to be copied";
}

TEST_F(ToolsTest, of_two_measurements_the_better_founded_one_is_kept) {
    Measurement few = timed(90), many = timed(100);
    few.samples = 5;
    EXPECT_EQ(merged(few, many).median_us, 100) << "more samples";
    EXPECT_EQ(merged(timed(100, 64, 50), timed(90, 64, 40)).median_us, 90) << "lower beyond the spreads";
    EXPECT_EQ(merged(timed(100, 64, 50), timed(99, 64, 40)).median_us, 100) << "within the spreads the later";
    Measurement failed = timed(0);
    failed.p20_us = failed.p80_us = 0;
    failed.outcome = Outcome::timeout;
    EXPECT_EQ(merged(failed, timed(100)).outcome, Outcome::correct) << "timed before not timed";
}

TEST_F(ToolsTest, a_candidate_that_was_wrong_anywhere_stays_wrong_and_is_named) {
    Measurement wrong = timed(50);
    wrong.outcome = Outcome::correctness;
    for (const bool wrong_first : {true, false}) {
        MergeReport report;
        EXPECT_EQ(merged(wrong_first ? wrong : timed(100), wrong_first ? timed(100) : wrong, &report).outcome, Outcome::correctness);
        EXPECT_EQ(report.conflicts.size(), 1u);
    }
}

TEST_F(ToolsTest, merging_leaves_no_file_behind_when_it_fails) {
    Store store = open(StoreMode::create, "a.db");
    ASSERT_TRUE(write_file(path("b.db"), "no database").ok());
    EXPECT_FALSE(merge_databases({path("a.db"), path("b.db")}, path("c.db")).ok());
    EXPECT_FALSE(std::filesystem::exists(path("c.db")));
    EXPECT_THAT(merge_databases({path("a.db")}, path("b.db")).status().message(), HasSubstr("exists"));
}

TEST_F(ToolsTest, pruning_removes_what_was_replaced_and_keeps_winners) {
    Store store = open();
    add(store, timed(50, 16, 10), causal_1024(), toolchain("old"));
    Measurement failed = timed(0, 24, 20);
    failed.p20_us = failed.p80_us = 0;
    failed.outcome = Outcome::compile;
    add(store, failed);
    for (int i = 0; i < 5; ++i) add(store, timed(100 + i, 32 + i, 30 + i));
    add(store, timed(10, 99, 5), problem("forward:sq9"));
    const auto blocks = [&] {
        std::vector<int> found;
        EXPECT_TRUE(store.for_each([&](const MeasurementRow& row) { return found.push_back(row.measurement.config.block_q), Status(); }).ok());
        return found;
    };
    EXPECT_EQ(*prune(store, {}), 1);
    EXPECT_THAT(blocks(), ElementsAre(24, 32, 33, 34, 35, 36, 99));
    EXPECT_EQ(store.info()->toolchains, 1) << "what nothing refers to goes too";
    PruneRules rules;
    rules.before = 34;
    EXPECT_EQ(*prune(store, rules), 4);
    EXPECT_THAT(blocks(), ElementsAre(32, 36, 99)) << "old winners stay";
    rules = {};
    rules.failures = true;
    rules.keep = 1;
    add(store, failed);
    EXPECT_EQ(*prune(store, rules), 2);
    EXPECT_THAT(blocks(), ElementsAre(32, 99));
    EXPECT_EQ(store.info()->configs, 2);
    EXPECT_EQ(store.best(causal_1024(), device())->config.block_q, 32);
}

TEST_F(ToolsTest, a_diff_names_the_winners_that_changed_came_or_went) {
    Store a = open(StoreMode::create, "a.db"), b = open(StoreMode::create, "b.db");
    for (Store* store : {&a, &b}) add(*store, timed(100), problem("forward:sq1"));
    add(a, timed(100, 16), problem("forward:sq2"));
    add(b, timed(100, 32), problem("forward:sq2"));
    add(a, timed(100), problem("forward:sq3"));
    add(b, timed(100), problem("forward:sq4"));
    const Result<std::vector<WinnerPair>> pairs = diff_winners(a, b);
    ASSERT_TRUE(pairs.ok());
    ASSERT_EQ(pairs->size(), 3u);
    EXPECT_EQ(std::pair((*pairs)[0].a->measurement.config.block_q, (*pairs)[0].b->measurement.config.block_q), std::pair(16, 32));
    EXPECT_FALSE((*pairs)[1].b.has_value());
    EXPECT_FALSE((*pairs)[2].a.has_value());
    EXPECT_TRUE(diff_winners(a, a)->empty());
}

TEST_F(ToolsTest, a_sound_database_has_no_findings) {
    Store store = open();
    add(store, timed(100));
    add(store, timed(120));
    EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(ToolsTest, impossible_times_and_rows_that_disagree_are_found) {
    Store store = open();
    add(store, timed(100));
    add(store, timed(130));
    Measurement wrong = timed(1, 32);
    wrong.outcome = Outcome::correctness;
    add(store, wrong);
    add(store, timed(90, 32));
    add(store, timed(90, 48, 2000000));
    CheckHooks hooks;
    hooks.least_us = [](const Problem&, const DeviceClass&) { return 95.0; };
    const std::vector<std::string> found = findings(hooks);
    EXPECT_THAT(found, Contains(HasSubstr("medians from 100.000000 to 130.000000 us")));
    EXPECT_THAT(found, Contains(HasSubstr("correct in one row, wrong in another")));
    EXPECT_THAT(found, Contains(HasSubstr("in the future")));
    EXPECT_THAT(found, Contains(HasSubstr("90.000000 us is below the device's limit of 95.000000 us")));
}

TEST_F(ToolsTest, stale_rows_and_columns_that_contradict_the_text_are_found) {
    {
        Store store = open();
        add(store, timed(100, 256));
        add(store, timed(100, 16), problem("forward:sq5"));
        add(store, timed(100, 32), problem("forward:sq6"));
    }
    change(path(), "UPDATE problem SET seq_q = 50 WHERE text LIKE 'forward:%sq5,%'; UPDATE problem SET dtype = 77 WHERE text LIKE 'forward:%sq6,%';"
                   "UPDATE config SET hash = 'x' WHERE json LIKE '%\"block_q\":32,%'; PRAGMA foreign_keys = OFF; UPDATE measurement SET config = 3 WHERE id = 2");
    CheckHooks hooks;
    hooks.legal = [](const Problem&, const DeviceClass&, const Config& config) { return config.block_q > 128 ? invalid_argument("over 128") : Status(); };
    const std::vector<std::string> found = findings(hooks);
    EXPECT_THAT(found, Contains(HasSubstr("its columns say forward:b1,hq1,hkv1,sq50,")));
    EXPECT_THAT(found, Contains(HasSubstr("dtype is 77")));
    EXPECT_THAT(found, Contains(HasSubstr("its hash is not x")));
    EXPECT_THAT(found, Contains(HasSubstr("over 128")));
}

TEST_F(ToolsTest, a_reference_to_nothing_is_damage) {
    {
        Store store = open();
        add(store, timed(100));
    }
    change(path(), "PRAGMA foreign_keys = OFF; UPDATE measurement SET config = 99");
    EXPECT_THAT(findings(), ElementsAre(HasSubstr("damage: row 1 of measurement refers to a config that is not there")));
}

}  // namespace
}  // namespace tilewright
