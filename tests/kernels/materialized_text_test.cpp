// The standard baseline compiles for GPUs of every family, with matrix instructions and without spills, as it is planned beside tiled attention.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/operation_plan.h"
#include "backends/registry.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

Result<KernelSpec> planned(const char* problem, const char* config, const Arch& arch) {
    const Problem parsed = *parse_problem(problem);
    CallTraits traits = dense_traits(parsed);
    traits.materialized = true;
    TILEWRIGHT_ASSIGN_OR_RETURN(const OperationPlan plan, plan_operation(parsed, *parse_config(config), arch, traits));
    EXPECT_EQ(plan.kernels.size(), 1u);
    EXPECT_EQ(plan.workspace_bytes, parsed.batch * parsed.heads_q * parsed.seq_q * parsed.seq_kv * 4);
    return plan.kernels[0];
}

struct Case {
    const char* arch;
    const char* problem;
    const char* config;
};

TEST(MaterializedText, CompilesForEveryFamily) {
    const Case cases[] = {
        {"sm_80", "forward:hq4,hkv2,sq300,d64,bf16,causal", R"({"block_q":64,"block_kv":32,"stages":2,"workers":4,"packs_heads":1,"overlapped":1})"},
        {"sm_80", "forward:sq300,d128,fp32", R"({"block_q":64,"block_kv":16,"workers":4})"},
        {"sm_90a", "forward:sq300,d128,fp16,softcap,bias,sink", R"({"block_q":64,"block_kv":32,"stages":2,"workers":4,"persistent":1})"},
        {"gfx90a", "forward:sq300,d64,fp16,causal", R"({"block_q":64,"block_kv":64,"workers":4})"},
        {"gfx942", "forward:sq300,d128,bf16,window64:0", R"({"block_q":128,"block_kv":64,"workers":4})"},
        {"gfx1100", "forward:sq300,d64,fp16,causal", R"({"block_q":64,"block_kv":32,"workers":4})"},
        {"gfx1201", "forward:sq300,d128,bf16,alibi", R"({"block_q":64,"block_kv":32,"workers":4})"},
    };
    int compiled = 0;
    for (const Case& c : cases) {
        SCOPED_TRACE(std::string(c.arch) + " " + c.problem);
        const Arch& arch = *find_arch(c.arch);
        Backend& backend = **find_backend(arch.backend);
        const Result<KernelSpec> spec = planned(c.problem, c.config, arch);
        ASSERT_TRUE(spec.ok()) << spec.status().message();
        const Result<KernelSource> source = generate(*spec, arch);
        ASSERT_TRUE(source.ok()) << source.status().message();
        if (!backend.toolchain().ok()) continue;
        const Result<CodeObject> object = backend.compile(*source, arch);
        ASSERT_TRUE(object.ok()) << object.status().message();
        const Result<Resources> resources = backend.inspect(*object);
        ASSERT_TRUE(resources.ok()) << resources.status().message();
        EXPECT_EQ(resources->local_bytes, 0);
        EXPECT_EQ(resources->matrix_instructions > 0, spec->problem.dtype != DType::fp32);
        ++compiled;
    }
    if (compiled == 0) GTEST_SKIP() << "no compiler for GPUs";
}

TEST(MaterializedText, SaysWhatItDoesNotDo) {
    KernelSpec spec;
    spec.kind = KernelKind::attention_materialized;
    spec.config.block_kv = 32, spec.config.workers = 4;
    for (const char* name : {"sm_80", "sm_90a", "gfx942", "gfx1100"}) {
        spec.problem = *parse_problem("forward:hq4,hkv2,sq64,d64,bf16");
        spec.problem.packed = false, spec.config.packs_heads = 1;
        EXPECT_THAT(generate(spec, *find_arch(name)).status().message(), HasSubstr("packs_heads")) << name;
        spec.config.packs_heads = 0, spec.config.overlapped = 1, spec.config.stages = 2;
        EXPECT_THAT(generate(spec, *find_arch(name)).status().message(), HasSubstr("overlapped")) << name;
        spec.config.overlapped = 0;
        EXPECT_TRUE(generate(spec, *find_arch(name)).ok()) << generate(spec, *find_arch(name)).status().message();
        spec.problem.packed = true;
        EXPECT_THAT(generate(spec, *find_arch(name)).status().message(), HasSubstr("packed")) << name;
    }
}

}  // namespace
}  // namespace tilewright
