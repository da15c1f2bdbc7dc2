// Simulation: many searches of a recorded space, and how near the optimum they come with how many evaluations.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "tuner/replay.h"
#include "tuner/strategy.h"

namespace tilewright {
namespace {

// The best cost after 1, 2, ... evaluations of one search; failed_cost while nothing worked.
std::vector<double> run(const RecordedSpace& recorded, std::unique_ptr<Strategy> strategy, uint64_t seed, int evaluations) {
    Search search(recorded.space, std::move(strategy), seed);
    std::vector<double> curve;
    double best = failed_cost;
    for (int i = 0; i < evaluations; ++i) {
        if (const auto index = search.propose()) {
            search.tell(*index, recorded.costs[*index]);
            best = std::min(best, recorded.costs[*index]);
        }
        curve.push_back(best);
    }
    return curve;
}

double quantile(std::vector<double> values, double fraction) {  // linear between the two nearest
    std::ranges::sort(values);
    const double place = fraction * static_cast<double>(values.size() - 1);
    const auto low = static_cast<size_t>(place);
    const size_t high = std::min(low + 1, values.size() - 1);
    if (values[low] == values[high]) return values[low];  // both may be infinite
    return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
}

// Expected best of 1, 2, ... draws without replacement; while only failures were drawn, the worst success counts.
std::vector<double> random_baseline(std::vector<double> costs, double worst) {
    for (double& cost : costs) cost = std::min(cost, worst);
    std::ranges::sort(costs);
    const size_t count = costs.size();
    std::vector<double> expected;
    // P(the best of n draws is the k-th) = P(none of the first k) * n / (count - k): products of ratios, no factorials.
    for (size_t n = 1; n <= count; ++n) {
        double none = 1, sum = 0;
        for (size_t k = 0; k + n <= count && none > 1e-12; ++k) {
            const double here = static_cast<double>(n) / static_cast<double>(count - k);
            sum += none * here * costs[k];
            none *= 1 - here;
        }
        expected.push_back(sum);
    }
    return expected;
}

double score_of(const std::vector<std::vector<double>>& curves, const RecordedSpace& recorded, double optimum, double worst) {
    std::vector<double> successes;
    for (const double cost : recorded.costs)
        if (cost < failed_cost) successes.push_back(cost);
    const double cutoff = optimum + 0.05 * (quantile(successes, 0.5) - optimum);
    const std::vector<double> baseline = random_baseline(recorded.costs, worst);
    double sum = 0;
    size_t points = 0;
    for (size_t i = 0; i < curves[0].size() && baseline[i] > cutoff && baseline[i] > optimum; ++i, ++points) {
        double mean = 0;
        for (const auto& curve : curves) mean += std::min(curve[i], worst);
        sum += (baseline[i] - mean / static_cast<double>(curves.size())) / (baseline[i] - optimum);
    }
    return points == 0 ? 0 : sum / static_cast<double>(points);
}

}  // namespace

Result<Simulation> simulate(const RecordedSpace& recorded, const SimulationOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    if (options.evaluations < 1) return invalid_argument("evaluations is " + std::to_string(options.evaluations) + "; at least 1 is needed");
    if (options.repeats < 1) return invalid_argument("repeats is " + std::to_string(options.repeats) + "; at least 1 is needed");
    if (auto strategy = make_strategy(options.strategy); !strategy.ok()) return strategy.status();
    double optimum = failed_cost, worst = 0;
    for (const double cost : recorded.costs) {
        optimum = std::min(optimum, cost);
        if (cost < failed_cost) worst = std::max(worst, cost);
    }
    if (optimum == failed_cost) return invalid_argument("'" + recorded.name + "' has no configuration that worked");

    const int evaluations = static_cast<int>(std::min<uint32_t>(static_cast<uint32_t>(options.evaluations), recorded.space.size()));
    std::vector<std::vector<double>> curves(static_cast<size_t>(options.repeats));
    std::atomic<size_t> next = 0;
    const auto work = [&] {
        for (size_t repeat; (repeat = next++) < curves.size();)
            curves[repeat] = run(recorded, *make_strategy(options.strategy), options.seed + repeat, evaluations);
    };
    std::vector<std::jthread> threads;
    const unsigned wanted = options.threads > 0 ? static_cast<unsigned>(options.threads) : std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 1; i < wanted; ++i) threads.emplace_back(work);
    work();
    threads.clear();

    Simulation result;
    std::vector<int> checkpoints = {20, 50, 100, 200, 400};
    std::erase_if(checkpoints, [&](int checkpoint) { return checkpoint >= evaluations; });
    checkpoints.push_back(evaluations);
    for (const int checkpoint : checkpoints) {
        std::vector<double> fractions;
        for (const auto& curve : curves) fractions.push_back(optimum / curve[static_cast<size_t>(checkpoint - 1)]);
        result.rows.push_back({checkpoint, quantile(fractions, 0.5), quantile(fractions, 0.1)});
    }
    for (const double fraction : {0.90, 0.95, 0.99}) {
        std::vector<double> counts;
        for (const auto& curve : curves) {
            const auto place = std::ranges::find_if(curve, [&](double best) { return optimum / best >= fraction; });
            counts.push_back(place == curve.end() ? failed_cost : static_cast<double>(place - curve.begin() + 1));
        }
        result.reached.push_back({fraction, quantile(counts, 0.5)});
    }
    result.score = score_of(curves, recorded, optimum, worst);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
}

}  // namespace tilewright
