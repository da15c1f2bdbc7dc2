// Several problems on one device: the list's text, its order, and what one problem's end means for the others.
#include "tuner/work_list.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include "runtime/device_class.h"
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
        order_.clear();
        return tune_all(group_devices({*find_tune_device("cpu:0")}, problems), path_, options, [&](const WorkProgress& work, const TuneProgress& now) {
            EXPECT_EQ(work.device, "cpu:0");
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
    const auto results = tune_all(group_devices({*find_tune_device("cpu:0")}, {first_, second_}), path_, interrupted, [&](const WorkProgress&, const TuneProgress& now) { stop = now.done >= 11; });
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
    EXPECT_THAT(find_tune_devices("cpu:0,cpu:7").status().message(), HasSubstr("no device 'cpu:7'"));
    EXPECT_THAT(find_tune_devices(",").status().message(), HasSubstr("no device given"));
}

TEST_F(WorkList, IsTakenFromTheMissesOfTheDevicesClassTheMostAskedFirst) {
    const TuneDevice cpu = *find_tune_device("cpu:0");
    Store store = *Store::open(path_, StoreMode::create);
    DeviceClass other = device_class(cpu.info);
    other.name = "another";
    ASSERT_TRUE(store.add_misses({{to_text(first_), device_class(cpu.info), 2, 0},
                                  {to_text(second_), device_class(cpu.info), 5, 0},
                                  {"forward:colour", device_class(cpu.info), 9, 0},
                                  {"forward:b1,hq1,hkv1,sq9,skv9,d64,fp32", other, 7, 0}})
                    .ok());
    const auto missed = missed_problems(store, cpu);
    ASSERT_TRUE(missed.ok()) << missed.status().message();
    EXPECT_THAT(*missed, ElementsAre(second_, first_));

    ASSERT_TRUE(run({second_}, options()).ok());
    EXPECT_THAT(*missed_problems(store, cpu), ElementsAre(first_)) << "what has a winner is missed no more";
}

// Stand-ins: the worker of these tests needs no device.
TuneDevice stand_in(const std::string& id, const std::string& name) {
    TuneDevice device = *find_tune_device("cpu:0");
    device.info.id = id;
    device.info.name = name;
    return device;
}

TEST(Devices, AreGroupedByClass) {
    const auto groups = group_devices({stand_in("a:0", "A"), stand_in("b:0", "B"), stand_in("a:1", "A")}, {test::fault_problem()});
    ASSERT_EQ(groups.size(), 2u);
    ASSERT_EQ(groups[0].devices.size(), 2u);
    EXPECT_EQ(groups[0].devices[1].info.id, "a:1");
    EXPECT_EQ(groups[1].devices.size(), 1u);
    EXPECT_EQ(groups[1].problems.size(), 1u);
    TuneDevice newer = stand_in("a:2", "A");
    newer.toolchain.compiler = "another";
    EXPECT_EQ(group_devices({stand_in("a:0", "A"), newer}, {}).size(), 2u) << "what two compilers make is not the same";
}

TEST_F(WorkList, TunesOnAllDevicesAtTheSameTime) {
    std::vector<Problem> problems = {first_, second_};
    for (int heads = 4; heads < 8; ++heads) {
        problems.push_back(first_);
        problems.back().heads_q *= heads;
    }
    std::map<std::string, std::set<std::string>> running;  // problems by device
    std::set<std::string> begun_before_any_end;
    bool ended = false;
    const auto results = tune_all(group_devices({stand_in("a:0", "A"), stand_in("b:0", "B"), stand_in("a:1", "A")}, problems), path_, options("slow"),
                                  [&](const WorkProgress& work, const TuneProgress& now) {
                                      running[work.device].insert(to_text(*work.problem));
                                      if (!ended) begun_before_any_end.insert(work.device);
                                      ended = ended || now.done >= 12;
                                      EXPECT_EQ(work.count, problems.size());
                                  });
    ASSERT_TRUE(results.ok()) << results.status().message();
    EXPECT_EQ(begun_before_any_end.size(), 3u) << "one after the other";
    ASSERT_EQ(results->size(), 12u);
    for (size_t i = 0; i < results->size(); ++i) {
        const WorkResult& result = (*results)[i];
        ASSERT_TRUE(result.status.ok()) << result.status.message();
        EXPECT_EQ(result.problem, problems[i % 6]);
        EXPECT_EQ(result.device.substr(0, 1), i < 6 ? "a" : "b");
        EXPECT_EQ(result.report.device.id, result.device);
        EXPECT_EQ(result.report.trials.size(), 12u);
        EXPECT_TRUE(result.report.best);
    }
    EXPECT_EQ(running["b:0"].size(), 6u);
    EXPECT_EQ(running["a:0"].size() + running["a:1"].size(), 6u) << "devices of a class share the list";
    EXPECT_GE(running["a:0"].size(), 2u);
    EXPECT_GE(running["a:1"].size(), 2u);
    Store store = *Store::open(path_, StoreMode::read);
    for (const Problem& problem : problems)
        for (const char* name : {"A", "B"}) EXPECT_TRUE(store.best(problem, device_class(stand_in("", name).info)).ok());
}

TEST_F(WorkList, ADeviceThatFailsLeavesTheRestToTheOthersOfItsClass) {
    Problem third = second_;
    third.heads_q *= 2;
    const auto results =
        tune_all(group_devices({stand_in("dead:0", "A"), stand_in("a:1", "A"), stand_in("dead:1", "B")}, {first_, second_, third}), path_, options("slow"), {});
    ASSERT_TRUE(results.ok()) << results.status().message();
    int failed = 0;
    for (size_t i = 0; i < 3; ++i) {
        const WorkResult& result = (*results)[i];
        EXPECT_EQ(result.status.ok(), result.device == "a:1") << result.device << ": " << result.status.message();
        if (result.status.ok()) continue;
        EXPECT_THAT(result.status.message(), HasSubstr("the bus fell off"));
        ++failed;
    }
    EXPECT_EQ(failed, 1);
    EXPECT_THAT((*results)[3].status.message(), HasSubstr("the bus fell off"));
    for (size_t i = 4; i < 6; ++i) EXPECT_THAT((*results)[i].status.message(), HasSubstr("not tried: device dead:1 does not answer"));
}

}  // namespace
}  // namespace tilewright
