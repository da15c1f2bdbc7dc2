// The winners that ship with the library: today's kernels take every one of them, and a lookup finds it.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/kernel_source.h"
#include "backends/operation_plan.h"
#include "db/defaults.h"
#include "model/space.h"

namespace tilewright {
namespace {

TEST(ShippedWinners, AreLegalForTodaysKernels) {
    for (const MeasurementRow& row : default_rows()) {
        const Arch* arch = find_arch(row.device.arch);
        ASSERT_NE(arch, nullptr) << row.device.arch;
        Result<OperationPlan> plan = plan_operation(row.problem, row.measurement.config, *arch, dense_traits(row.problem));
        ASSERT_TRUE(plan.ok()) << to_text(row.problem) << ": " << plan.status().message();
        for (const KernelSpec& spec : plan->kernels) {
            Result<KernelSource> source = generate(spec, *arch);
            EXPECT_TRUE(source.ok()) << to_text(row.problem) << " " << to_json(row.measurement.config) << ": " << source.status().message();
        }
    }
}

TEST(ShippedWinners, AreFoundExactlyOnTheirDevice) {
    DatabaseOptions options;
    options.use_user = options.use_system = options.log_misses = false;
    TuningDatabase database = TuningDatabase::open(options);
    for (const MeasurementRow& row : default_rows()) {
        LookupResult found = database.lookup(row.problem, database.device(row.device));
        EXPECT_EQ(found.provenance, Provenance::exact) << to_text(row.problem);
        EXPECT_EQ(found.config, row.measurement.config) << to_text(row.problem);
        EXPECT_GT(found.median_us, 0) << to_text(row.problem);
    }
}

TEST(ShippedWinners, HoldTheCellsThatAreMeasuredBesidePeersOnAnH200) {
    for (Operation operation : {Operation::forward, Operation::backward})
        for (int64_t head_dim : {64, 128, 256})
            for (int64_t seq : {512, 1024, 2048, 4096, 8192, 16384})
                for (int64_t window_right : {-1, 0}) {  // full, causal
                    Problem problem;
                    problem.operation = operation, problem.window_right = window_right;
                    problem.batch = 16384 / seq, problem.heads_q = problem.heads_kv = 2048 / head_dim;
                    problem.seq_q = problem.seq_kv = seq, problem.head_dim = problem.head_dim_v = head_dim;
                    int64_t count = std::ranges::count_if(default_rows(), [&](const MeasurementRow& row) { return row.problem == problem && row.device.name == "NVIDIA H200"; });
                    EXPECT_EQ(count, 1) << to_text(problem);
                }
}

}  // namespace
}  // namespace tilewright
