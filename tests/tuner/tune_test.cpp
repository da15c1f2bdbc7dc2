// The tuning loop against workers that crash, hang, lie and eat memory, and against interruptions.
#include "tuner/tune.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "runtime/device_class.h"
#include "tuner/device_tasks.h"
#include "tuner/fault_worker.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

class Tune : public testing::Test {
protected:
    void SetUp() override { std::filesystem::remove(path_); }
    void TearDown() override { std::filesystem::remove(path_); }

    Store open() { return *Store::open(path_, StoreMode::create); }
    static TuneOptions options(int64_t evaluations, const std::string& mode = "brief") {
        TuneOptions result;
        result.strategy = "exhaustive";
        result.budget_evaluations = evaluations;
        result.use_seeds = false;
        result.compile_jobs = 2;
        result.compile_timeout_seconds = result.run_timeout_seconds = 2;
        result.worker_command = test::fault_worker_command(mode);
        return result;
    }
    TuneReport run(const TuneOptions& options) {
        Store store = open();
        auto report = tune(problem_, "cpu:0", store, options);
        EXPECT_TRUE(report.ok()) << report.status().message();
        return *std::move(report);
    }
    std::vector<Measurement> stored() {
        Store store = open();
        std::vector<Measurement> rows;
        EXPECT_TRUE(store
                        .for_each([&](const MeasurementRow& row) {
                            rows.push_back(row.measurement);
                            return Status();
                        })
                        .ok());
        return rows;
    }

    const Problem problem_ = test::fault_problem();
    const std::string path_ = testing::TempDir() + "tilewright_tune_" + std::to_string(getpid()) + ".db";
};

TEST_F(Tune, NamesEveryFaultAndFindsTheBestOfTheRest) {
    const TuneReport report = run(options(20, "all"));
    ASSERT_EQ(report.trials.size(), 20u);
    const auto trial = [&](int place) -> const Measurement& { return report.trials[static_cast<size_t>(place)].measurement; };
    EXPECT_EQ(trial(test::crashes).outcome, Outcome::runtime);
    EXPECT_THAT(trial(test::crashes).note, HasSubstr("killed by signal 11"));
    EXPECT_THAT(trial(test::crashes).note, HasSubstr("twice"));
    EXPECT_EQ(trial(test::hangs).outcome, Outcome::timeout);
    EXPECT_THAT(trial(test::hangs).note, HasSubstr("no answer in 2 s"));
    EXPECT_EQ(trial(test::is_wrong).outcome, Outcome::correctness);
    EXPECT_THAT(trial(test::is_wrong).note, HasSubstr("out[3] is 7"));
    EXPECT_EQ(trial(test::eats_memory).outcome, Outcome::runtime);
    EXPECT_THAT(trial(test::eats_memory).note, HasSubstr("out of memory"));
    EXPECT_EQ(trial(test::does_not_compile).outcome, Outcome::compile);
    EXPECT_THAT(trial(test::does_not_compile).note, HasSubstr("expected ';'"));
    EXPECT_EQ(trial(test::crashes_the_compiler).outcome, Outcome::compile);
    EXPECT_THAT(trial(test::crashes_the_compiler).note, HasSubstr("signal 4"));
    EXPECT_EQ(trial(test::hangs_the_compiler).outcome, Outcome::timeout);
    EXPECT_EQ(trial(test::stops_itself).outcome, Outcome::timeout);
    EXPECT_EQ(trial(test::exits).outcome, Outcome::runtime);
    EXPECT_THAT(trial(test::exits).note, HasSubstr("exited with status 3"));
    ASSERT_TRUE(report.best);
    EXPECT_EQ(*report.best, static_cast<size_t>(test::first_good));
    EXPECT_EQ(*report.worst, 19u);
    EXPECT_EQ(report.outcomes.at("correct"), 11);
    EXPECT_EQ(report.outcomes.at("timeout"), 3);
    EXPECT_EQ(report.ties, std::vector<size_t>{*report.best});
}

TEST_F(Tune, GoesOnWhereAnEarlierRunStopped) {
    EXPECT_EQ(run(options(6)).trials.size(), 6u);
    const size_t before = stored().size();
    const TuneReport second = run(options(12));
    EXPECT_EQ(second.resumed, 6);
    EXPECT_EQ(second.trials.size(), 12u);
    EXPECT_EQ(second.trials[test::is_wrong].measurement.outcome, Outcome::correctness);
    EXPECT_TRUE(second.trials[test::is_wrong].resumed);
    // Six new ones, and up to three finalists (places 9, 10, 11) raced.
    EXPECT_EQ(stored().size(), before + 6 + 3);
}

TEST_F(Tune, LookupsWillAnswerWithTheWinnerThatIsReported) {
    // A first run, one that adds candidates, and one that finds nothing left to do.
    for (const int evaluations : {12, 20, 20}) {
        const TuneReport report = run(options(evaluations));
        ASSERT_TRUE(report.best);
        const Result<Measurement> winner = open().best(problem_, device_class(report.device));
        ASSERT_TRUE(winner.ok()) << winner.status().message();
        EXPECT_EQ(to_json(winner->config), to_json(report.trials[*report.best].config));
    }
}

TEST_F(Tune, WithALimitOnTheErrorTheFastestWithinItWins) {
    TuneOptions exact = options(20);
    exact.objective.max_error = 1e-5;
    const TuneReport report = run(exact);
    ASSERT_TRUE(report.best);
    EXPECT_EQ(*report.best, static_cast<size_t>(test::rough_good + 1));
    EXPECT_EQ(report.outcomes.at("correct"), 11) << "those beyond it are correct all the same";
    EXPECT_EQ(report.front, (std::vector<size_t>{test::first_good, test::rough_good + 1}));
    // What lookups without a limit go by is the fastest.
    const Result<Measurement> winner = open().best(problem_, device_class(report.device));
    ASSERT_TRUE(winner.ok());
    EXPECT_EQ(winner->config, report.trials[test::first_good].config);
    exact.objective.max_error = 1e-7;
    EXPECT_FALSE(run(exact).best);
}

TEST_F(Tune, ForEnergyTheOneThatTakesLeastWins) {
    ASSERT_EQ(run(options(14)).outcomes.at("correct"), 5);  // for time: their energy is not known afterwards
    TuneOptions frugal = options(20);
    frugal.objective.least = Quantity::energy;
    const TuneReport report = run(frugal);
    EXPECT_EQ(report.resumed, 9) << "what failed is not tried again, what has no energy is";
    ASSERT_TRUE(report.best);
    EXPECT_EQ(report.trials[*report.best].measurement.median_us, 1190);
    EXPECT_NEAR(report.trials[*report.best].measurement.energy_j, 1.81, 1e-9);
    EXPECT_EQ(report.front.size(), 11u) << "each is faster than those behind and takes more";
    const auto stored_energy = [](const Measurement& m) { return m.energy_j; };
    EXPECT_THAT(stored(), testing::Contains(testing::ResultOf(stored_energy, testing::DoubleNear(1.81, 1e-9))));
    // What lookups go by is the fastest, as a run for time leaves it.
    const TuneReport fast = run(options(20));
    EXPECT_EQ(fast.trials[*fast.best].measurement.median_us, 1090);
    const Result<Measurement> winner = open().best(problem_, device_class(report.device));
    ASSERT_TRUE(winner.ok());
    EXPECT_EQ(winner->config, fast.trials[*fast.best].config);
}

TEST_F(Tune, ForEnergyTheDeviceMustSayWhatItTakes) {
    TuneOptions frugal = options(20, "no energy");
    frugal.objective.least = Quantity::energy;
    Store store = open();
    const auto report = tune(problem_, "cpu:0", store, frugal);
    EXPECT_EQ(report.status().code(), StatusCode::unavailable);
    EXPECT_THAT(report.status().message(), HasSubstr("cpu:0 does not answer: it does not say how much energy it takes"));
}

TEST_F(Tune, KeepsWhatDisturbedAMeasurement) {
    const TuneReport report = run(options(14));
    const Measurement& measurement = report.trials[test::disturbed].measurement;
    EXPECT_EQ(measurement.clock_mhz, 1410);
    EXPECT_EQ(measurement.temperature_c, 88);
    EXPECT_EQ(measurement.exclusive, 0);
    EXPECT_THAT(stored()[test::disturbed].note, HasSubstr("clocks held down by power"));
    EXPECT_THAT(report.notes, testing::Contains(HasSubstr("candidate 13: clocks held down by power")));
    EXPECT_EQ(report.trials[test::disturbed + 1].measurement.exclusive, -1);
    EXPECT_EQ(stored()[test::disturbed].clock_mhz, 1410);
}

TEST_F(Tune, ComparesTheModelsOccupancyWithTheDevices) {
    const TuneReport report = run(options(14));
    EXPECT_EQ(report.occupancy.compared, 4) << "places 9, 10, 11 and 13: of 12 the device says nothing, what is before does not run";
    EXPECT_EQ(report.occupancy.agreed, 3);
    EXPECT_EQ(report.occupancy.first_difference, to_json(report.trials[test::misjudged].config) + " in kernel 2 of 2: 2 blocks by the model, 1 by the device");
    EXPECT_EQ(run(options(14)).occupancy.compared, 0) << "all were tried by an earlier run";
}

TEST_F(Tune, ABudgetCanBeAPartOfTheLegalConfigs) {
    TuneOptions part = options(0);
    part.budget_fraction = 0.06;
    const TuneReport report = run(part);
    EXPECT_EQ(report.trials.size(), static_cast<size_t>(std::ceil(0.06 * static_cast<double>(report.legal))));
    EXPECT_EQ(report.stopped, "budget");
}

TEST_F(Tune, TriesFailuresAgainOnlyIfAsked) {
    run(options(6));
    TuneOptions again = options(6);
    again.retry_failed = true;
    const TuneReport report = run(again);
    EXPECT_EQ(report.resumed, 0);  // all of the first six fail
    EXPECT_EQ(report.outcomes.count("correct"), 0u);
    EXPECT_FALSE(report.best);
}

TEST_F(Tune, AStopFinishesTheCurrentCandidateAndReports) {
    std::atomic<bool> stop = false;
    TuneOptions interrupted = options(0);
    interrupted.stop = &stop;
    interrupted.progress = [&](const TuneProgress& progress) { stop = progress.done >= 11; };
    const TuneReport report = run(interrupted);
    EXPECT_EQ(report.trials.size(), 11u);
    EXPECT_EQ(report.stopped, "interrupted");
    EXPECT_EQ(*report.best, static_cast<size_t>(test::first_good));
    EXPECT_EQ(stored().size(), 11u);
}

TEST_F(Tune, ADeadDeviceIsAnErrorAndNotTheCandidatesFault) {
    Store store = open();
    const auto report = tune(problem_, "cpu:0", store, options(5, "dead"));
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.status().code(), StatusCode::unavailable);
    EXPECT_THAT(report.status().message(), HasSubstr("cpu:0 does not answer: the bus fell off"));
    EXPECT_TRUE(stored().empty());
}

TEST_F(Tune, ATimeBudgetEnds) {
    TuneOptions timed = options(0, "slow");
    timed.budget_seconds = 3;
    const TuneReport report = run(timed);
    EXPECT_EQ(report.stopped, "budget");
    EXPECT_LT(report.seconds, 8);
}

TEST_F(Tune, AKilledTunerLosesNothingStoredAndLeavesNoWorker) {
    const pid_t child = fork();
    if (child == 0) {
        Store store = *Store::open(path_, StoreMode::create);
        (void)tune(problem_, "cpu:0", store, options(0, "slow")).ok();
        _exit(0);
    }
    std::vector<int64_t> seen;
    for (int i = 0; i < 600 && seen.size() < 12; ++i) {
        usleep(50000);
        if (!std::filesystem::exists(path_)) continue;
        if (auto store = Store::open(path_, StoreMode::read); store.ok()) {
            seen.clear();
            (void)store
                ->for_each([&](const MeasurementRow& row) {
                    seen.push_back(row.measurement.id);
                    return Status();
                })
                .ok();
        }
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    ASSERT_GE(seen.size(), 12u);
    const TuneReport report = run(options(14));
    EXPECT_GE(report.resumed, 12);
    EXPECT_EQ(*report.best, static_cast<size_t>(test::first_good));
}

TEST_F(Tune, SaysWhatIsWrongWithItsInput) {
    Store store = open();
    const auto message = [&](const std::string& device, TuneOptions with) { return tune(problem_, device, store, with).status().message(); };
    EXPECT_THAT(message("tpu:0", options(1)), HasSubstr("tpu"));
    EXPECT_THAT(message("cpu:7", options(1)), HasSubstr("no device 'cpu:7'; there is cpu:0"));
    TuneOptions unknown = options(1), commandless = options(1), absent = options(1);
    unknown.strategy = "luck";
    commandless.worker_command.clear();
    absent.worker_command = {"/nowhere/tilewright", "worker"};
    EXPECT_THAT(message("cpu:0", unknown), HasSubstr("unknown strategy 'luck'"));
    EXPECT_THAT(message("cpu:0", commandless), HasSubstr("no worker command"));
    EXPECT_THAT(message("cpu:0", absent), HasSubstr("cannot start the worker '/nowhere/tilewright'"));
}

}  // namespace
}  // namespace tilewright
