// The probes of the matrix instructions compile for every architecture, and each issues what it probes.
#include "amd_probe.h"
#include "amd_test_kernels.h"
#include "backends/amd/code_object.h"
#include "backends/amd/instructions.h"

namespace tilewright::amd {
namespace {

TEST(AmdProbe, EveryProbeIssuesItsInstruction) {
    if (!test_compiler().ok()) GTEST_SKIP() << test_compiler().status().message();
    for (const char* name : {"gfx90a", "gfx942", "gfx1100", "gfx1201"}) {
        const Arch& arch = *find_arch(name);
        for (const Probe& probe : probes_of(arch)) {
            auto source = probe_source(arch, probe);
            ASSERT_TRUE(source.ok()) << source.status().message();
            CodeObject object = compile_for_test(*source, name);
            auto parsed = read_code_object(object.bytes);
            ASSERT_TRUE(parsed.ok()) << parsed.status().message();
            bool found = false;
            for (const KernelCode& kernel : parsed->kernels) {
                if (kernel.name != "probe") continue;
                found = true;
                auto counts = count_instructions(kernel.code, arch.family);
                ASSERT_TRUE(counts.ok()) << counts.status().message();
                EXPECT_EQ(counts->matrix, probe.instructions) << name << " " << probe.matrix;
            }
            EXPECT_TRUE(found);
        }
    }
}

}  // namespace
}  // namespace tilewright::amd
