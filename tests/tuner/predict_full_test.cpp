// Ranking a space with real compilers and no device; skipped where there is no compiler for AMD.
#include "tuner/predict.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "backends/amd/compiler.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

class Predict : public testing::Test {
protected:
    void SetUp() override {
        if (!amd::find_compiler().ok()) GTEST_SKIP() << amd::find_compiler().status().message();
        options_.worker_command = {TILEWRIGHT_COMMAND, "worker"};
        if (access(TILEWRIGHT_COMMAND, X_OK) != 0) GTEST_SKIP() << "the program was not built";
        options_.budget_evaluations = 3;
    }
    void TearDown() override { std::filesystem::remove(path_); }
    const Problem problem_ = *parse_problem("forward:b1,hq4,hkv4,sq1024,skv1024,d64,fp16");
    const std::string path_ = testing::TempDir() + "tilewright_predict_" + std::to_string(getpid()) + ".db";
    TuneOptions options_;
};

TEST_F(Predict, StoresRowsThatAreNoMeasurements) {
    Result<Store> store = Store::open(path_, StoreMode::create);
    ASSERT_TRUE(store.ok());
    const auto report = predict_space(problem_, *find_arch("gfx942"), *store, options_);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->trials.size(), 3u);
    EXPECT_EQ(report->stopped, "budget");
    ASSERT_TRUE(report->best);
    EXPECT_GT(report->trials[*report->best].measurement.median_us, report->roofline_us);
    int64_t rows = 0, winners = 0;
    ASSERT_TRUE(store
                    ->for_each([&](const MeasurementRow& row) -> Status {
                        ++rows;
                        EXPECT_EQ(row.measurement.outcome, Outcome::predicted);
                        EXPECT_THAT(row.measurement.note, HasSubstr("main loop"));
                        EXPECT_EQ(row.device.name, "");
                        return {};
                    })
                    .ok());
    EXPECT_EQ(rows, 3);
    ASSERT_TRUE(store->for_each_best([&](const MeasurementRow&) -> Status { return ++winners, Status(); }).ok());
    EXPECT_EQ(winners, 0);

    const auto again = predict_space(problem_, *find_arch("gfx942"), *store, options_);  // nothing is compiled twice
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->resumed, 3);
    EXPECT_EQ(again->trials.size(), 3u);
}

TEST_F(Predict, StoresNothingWhereWorkersCannotCompile) {
    Result<Store> store = Store::open(path_, StoreMode::create);
    ASSERT_TRUE(store.ok());
    Arch unknown = *find_arch("gfx942");
    unknown.name = "gfx9999";
    const auto report = predict_space(problem_, unknown, *store, options_);
    EXPECT_EQ(report.status().code(), StatusCode::unavailable);
    EXPECT_THAT(report.status().message(), HasSubstr("gfx9999"));
    EXPECT_TRUE(store->for_each([](const MeasurementRow&) -> Status { return Status(StatusCode::internal, "there is a row"); }).ok());
}

TEST_F(Predict, NamesAnArchitectureThatDoesNotExist) {
    WorkerRequest request;
    request.action = WorkerAction::predict;
    request.device = "gfx000";
    request.problem = problem_;
    request.configs = {Config{}};
    WorkerReply reply;
    EXPECT_THAT(predict_candidate(request, reply).message(), HasSubstr("no architecture 'gfx000'"));
}

}  // namespace
}  // namespace tilewright
