// The model's untuned choices through the vendors' compilers: they compile, do not spill (RDNA3's widest head dimensions a little), and take the shared memory that was
// foretold. No device is needed; a backend whose compiler is absent is skipped.
#include <gtest/gtest.h>

#include "backends/backend.h"
#include "model/model.h"
#include "model/space.h"

namespace tilewright {
namespace {

class Resources : public testing::TestWithParam<const char*> {};

TEST_P(Resources, OfDefaultConfigsAreAsForetoldAndNothingSpills) {
    const Arch& arch = *find_arch(GetParam());
    Backend* backend = *find_backend(arch.backend);
    if (Result<std::string> compiler = backend->toolchain(); !compiler.ok()) GTEST_SKIP() << compiler.status().message();
    for (const char* text : {"forward:b4,hq16,sq4096,d64,bf16", "forward:b4,hq32,hkv8,sq4096,d128,fp16,causal", "forward:hq128,sq2048,d192,dv128,bf16,causal",
                             "forward:b4,hq16,hkv8,sq4096,d256,bf16", "forward:b4,hq32,hkv8,sq1,skv4096,d128,bf16"}) {
        Problem problem = *parse_problem(text);
        KernelSpec spec = dense_spec(problem, default_config(problem, arch));
        std::string label = arch.name + " " + text + " " + to_json(spec.config);
        Result<KernelSource> source = generate(spec, arch);
        ASSERT_TRUE(source.ok()) << label << ": " << source.status().message();
        Result<CodeObject> object = backend->compile(*source, arch);
        if (!object.ok() && object.status().message().find("does not know " + arch.name) != std::string::npos) GTEST_SKIP() << "the compiler does not know " << arch.name;
        ASSERT_TRUE(object.ok()) << label << ": " << object.status().message();
        Result<tilewright::Resources> real = backend->inspect(*object);
        ASSERT_TRUE(real.ok()) << label << ": " << real.status().message();
        // RDNA3 has 256 registers: 128 hold 256 columns of output, and no tile leaves enough for the operands.
        // A single wave for a single query holds a whole KV tile on its way: gfx1151 spills 4.
        bool crowded = arch.family == Family::rdna3 && (problem.head_dim_v > 128 || problem.seq_q == 1);
        EXPECT_LE(real->spill_bytes, crowded ? 160 : 0) << label;
        Result<ResourceEstimate> estimate = estimate_resources(spec, arch);
        ASSERT_TRUE(estimate.ok());
        EXPECT_EQ(source->threads, estimate->threads) << label;
        EXPECT_EQ(source->shared_bytes + std::max<int64_t>(0, real->shared_bytes), estimate->shared_bytes) << label;
        EXPECT_LE(real->registers, estimate->register_budget) << label;
        EXPECT_TRUE(predict(spec, arch, &*real).ok()) << label;
    }
}

INSTANTIATE_TEST_SUITE_P(Archs, Resources, testing::Values("sm_80", "sm_89", "sm_90a", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201"),
                         [](const auto& arch) { return std::string(arch.param); });

}  // namespace
}  // namespace tilewright
