// Several problems on one device: the list's text, its order, and what one problem's end means for the others.
#include "tuner/work_list.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "tuner/fault_worker.h"

namespace tilewright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Problem problem(const std::string& text) { return *parse_problem(text); }

TEST(ProblemList, SkipsCommentsEmptyLinesAndProblemsThatStoodBefore) {
    const auto problems =
        parse_problem_list("# all of them\nforward:sq64,d64\r\n\n  forward:sq128,d64  # longer\nforward:skv64,sq64,d64\nforward:sq32,d64", "list");
    ASSERT_TRUE(problems.ok()) << problems.status().message();
    EXPECT_THAT(*problems, ElementsAre(problem("forward:sq64,d64"), problem("forward:sq128,d64"), problem("forward:sq32,d64")));
}

TEST(ProblemList, NamesTheLineThatIsWrong) {
    const Status status = parse_problem_list("forward:sq64,d64\n# fine\nforward:sq64,colour\nnonsense\n", "list.txt").status();
    EXPECT_EQ(status.code(), StatusCode::invalid_argument);
    EXPECT_THAT(status.message(), HasSubstr("list.txt, line 3: "));
    EXPECT_THAT(status.message(), HasSubstr("colour"));
}

TEST(ProblemList, WithoutAProblemIsAnError) {
    EXPECT_THAT(parse_problem_list("# nothing\n\n", "list.txt").status().message(), HasSubstr("list.txt has no problem"));
    EXPECT_FALSE(parse_problem_list("", "list.txt").ok());
}

class WorkList : public testing::Test {
protected:
    void SetUp() override { std::filesystem::remove(path_); }
    void TearDown() override { std::filesystem::remove(path_); }

    static TuneOptions options(const std::string& mode = "brief") {
        TuneOptions result;
        result.strategy = "exhaustive";
        result.budget_evaluations = 12;
        result.use_seeds = false;
        result.compile_jobs = 2;
        result.compile_timeout_seconds = result.run_timeout_seconds = 2;
        result.worker_command = test::fault_worker_command(mode);
        return result;
    }
    Result<std::vector<WorkResult>> run(const std::vector<Problem>& problems, const TuneOptions& options) {
        Store store = *Store::open(path_, StoreMode::create);
        order_.clear();
        return tune_all(problems, "cpu:0", store, options, [&](const WorkProgress& work, const TuneProgress& now) {
            EXPECT_EQ(work.count, problems.size());
            EXPECT_GE(work.seconds_left, now.seconds_left);
            if (order_.size() < work.number) order_.push_back(*work.problem);
            EXPECT_EQ(order_.size(), work.number);
        });
    }

    const Problem first_ = test::fault_problem();
    Problem second_ = [] {
        Problem other = test::fault_problem();
        other.heads_q *= 3;
        return other;
    }();
    std::vector<Problem> order_;  // in which they were tuned
    const std::string path_ = testing::TempDir() + "tilewright_work_list_" + std::to_string(getpid()) + ".db";
};

TEST_F(WorkList, GivesEachProblemTheWholeBudget) {
    const auto results = run({first_, second_}, options());
    ASSERT_TRUE(results.ok()) << results.status().message();
    ASSERT_EQ(results->size(), 2u);
    for (const WorkResult& result : *results) {
        ASSERT_TRUE(result.status.ok()) << result.status.message();
        EXPECT_EQ(result.report.problem, result.problem);
        EXPECT_EQ(result.report.trials.size(), 12u);
        EXPECT_TRUE(result.report.best);
    }
    EXPECT_THAT(order_, ElementsAre(first_, second_));
}

TEST_F(WorkList, BeginsWithTheProblemOfWhichLeastIsKnown) {
    ASSERT_TRUE(run({first_}, options()).ok());
    const auto results = run({first_, second_}, options());
    ASSERT_TRUE(results.ok());
    EXPECT_EQ((*results)[0].problem, first_);  // the results stay as given
    EXPECT_EQ((*results)[0].report.resumed, 12);
    EXPECT_EQ((*results)[1].report.resumed, 0);
    ASSERT_FALSE(order_.empty());
    EXPECT_EQ(order_[0], second_);
}

TEST_F(WorkList, AStopLeavesTheRestUntried) {
    std::atomic<bool> stop = false;
    TuneOptions interrupted = options();
    interrupted.stop = &stop;
    Store store = *Store::open(path_, StoreMode::create);
    const auto results = tune_all({first_, second_}, "cpu:0", store, interrupted, [&](const WorkProgress&, const TuneProgress& now) { stop = now.done >= 11; });
    ASSERT_TRUE(results.ok());
    EXPECT_EQ((*results)[0].report.stopped, "interrupted");
    EXPECT_EQ((*results)[0].report.trials.size(), 11u);
    EXPECT_EQ((*results)[1].status.message(), "not tried: interrupted");
}

TEST_F(WorkList, ADeadDeviceStopsTheList) {
    const auto results = run({first_, second_}, options("dead"));
    ASSERT_TRUE(results.ok());
    EXPECT_THAT((*results)[0].status.message(), HasSubstr("the bus fell off"));
    EXPECT_THAT((*results)[1].status.message(), HasSubstr("not tried: device cpu:0 does not answer: the bus fell off"));
}

TEST_F(WorkList, SaysWhatIsWrongForAll) {
    TuneOptions unknown = options();
    unknown.strategy = "luck";
    EXPECT_THAT(run({first_}, unknown).status().message(), HasSubstr("unknown strategy 'luck'"));
    Store store = *Store::open(path_, StoreMode::create);
    EXPECT_THAT(tune_all({first_}, "cpu:7", store, options(), {}).status().message(), HasSubstr("no device 'cpu:7'"));
}

}  // namespace
}  // namespace tilewright
