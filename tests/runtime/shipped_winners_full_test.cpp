// The NVIDIA winners that ship, through the compiler: none spills, none has its matrix products serialised.
#include <gtest/gtest.h>

#include <set>

#include "backends/backend.h"
#include "backends/nvidia/nvrtc.h"
#include "backends/operation_plan.h"
#include "db/defaults.h"
#include "model/space.h"

namespace tilewright {
namespace {

TEST(ShippedWinners, OfNvidiaCompileWithoutSpills) {
    Backend& backend = **find_backend("nvidia");
    if (auto toolchain = backend.toolchain(); !toolchain.ok()) GTEST_SKIP() << toolchain.status().message();
    std::set<std::string> compiled;
    for (const MeasurementRow& row : default_rows()) {
        if (row.device.backend != "nvidia") continue;
        const Arch& arch = *find_arch(row.device.arch);
        Result<OperationPlan> plan = plan_operation(row.problem, row.measurement.config, arch, dense_traits(row.problem));
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        for (const KernelSpec& spec : plan->kernels) {
            Result<KernelSource> source = generate(spec, arch);
            ASSERT_TRUE(source.ok()) << source.status().message();
            if (!compiled.insert(source->text).second) continue;  // sizes alone differ
            Result<CodeObject> object = backend.compile(*source, arch);
            ASSERT_TRUE(object.ok()) << to_text(row.problem) << ": " << object.status().message();
            Result<Resources> resources = backend.inspect(*object);
            ASSERT_TRUE(resources.ok()) << resources.status().message();
            EXPECT_EQ(nvidia::reason_to_reject(object->log, *resources), "") << to_text(row.problem) << " " << to_json(row.measurement.config) << " " << source->entry;
        }
    }
}

}  // namespace
}  // namespace tilewright
