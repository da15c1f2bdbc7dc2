// Every way an NVIDIA kernel can be built, run on the device and checked against the float64 reference; the set that
// scripts/sanitize_nvidia.sh runs under compute-sanitizer.
#include <gtest/gtest.h>


#include "backends/nvidia/nvrtc.h"
#include "verify/check.h"
#include "verify/device_workload.h"
#include "verify/nvidia_build.h"

namespace tilewright {
namespace {

struct Case {
    const char* name;
    const char* problem;
    const char* config;
    Layout layout = Layout::rows_first;
    float scale = 0;           // 0: the default
    bool plain = false;        // the sm_80 family's kernel although tensor maps would do
    friend void PrintTo(const Case& c, std::ostream* out) { *out << c.problem << " " << c.config; }
};

// Shapes are small and ragged: one tile, several, partial ones, and for persistent kernels more tiles than blocks.
const Case cases[] = {
    {"TurnsOfThree", "forward:b1,hq4,hkv2,sq300,skv333,d128", R"({"block_q":192,"block_kv":128,"stages":2,"workers":3,"turns":1})"},
    {"PersistentTurns", "forward:b5,hq16,sq400,skv200,d128,causal", R"({"block_q":192,"block_kv":128,"stages":2,"workers":3,"turns":1,"persistent":1,"section_kb":100})"},
    {"PersistentOverlapped", "forward:b5,hq16,sq400,skv300,d128", R"({"block_q":128,"block_kv":128,"stages":2,"workers":2,"overlapped":1,"persistent":1})"},
    {"CausalMoreQueries", "forward:b2,hq2,sq333,skv100,d64,fp16,causal", R"({"block_q":192,"block_kv":128,"stages":2,"workers":3,"overlapped":1,"turns":1,"persistent":1})"},
    {"TwoBlocksAMultiprocessor", "forward:b1,hq4,sq200,skv777,d64", R"({"block_q":64,"block_kv":64,"stages":3,"workers":1,"blocks":2})"},
    {"WideHeads", "forward:b1,hq2,sq150,skv350,d256,causal", R"({"block_q":128,"block_kv":80,"stages":2,"workers":2,"overlapped":1,"turns":1})"},
    {"TwoHeadDims", "forward:b1,hq2,sq150,skv350,d192,dv128,causal", R"({"block_q":128,"block_kv":64,"stages":2,"workers":2})"},
    {"NarrowHeads", "forward:b2,hq2,sq150,skv350,d32,fp16", R"({"block_q":64,"block_kv":64,"stages":2,"workers":1})"},
    {"PanelsNotWhole", "forward:b2,hq2,sq150,skv350,d72,dv80", R"({"block_q":128,"block_kv":64,"stages":2,"workers":2})"},
    {"PackedHeads", "forward:b2,hq12,hkv2,sq23,skv500,d128,causal", R"({"block_q":64,"block_kv":128,"stages":2,"workers":1,"packs_heads":1})"},
    {"Window", "forward:b1,hq2,sq500,skv500,d64,window100:20", R"({"block_q":128,"block_kv":64,"stages":2,"workers":2,"overlapped":1})"},
    {"WindowSeenApart", "forward:b9,hq8,sq500,skv500,d64,window40:10", R"({"block_q":192,"block_kv":64,"stages":2,"workers":3,"overlapped":1,"turns":1,"persistent":1})"},
    {"CausalSeenApart", "forward:b9,hq8,sq400,skv450,d128,causal", R"({"block_q":192,"block_kv":64,"stages":3,"workers":3,"turns":1,"persistent":1})"},
    {"CausalHalfTiles", "forward:b9,hq8,sq400,skv450,d64,causal", R"({"block_q":192,"block_kv":128,"stages":3,"workers":3,"overlapped":1,"turns":1,"persistent":1})"},
    {"CausalHalfTilesOfTwo", "forward:b9,hq8,sq400,skv450,d128,fp16,causal", R"({"block_q":128,"block_kv":128,"stages":2,"workers":2,"overlapped":1,"turns":1,"persistent":1})", Layout::rows_first, 20.0f},
    {"EveryVariant", "forward:b1,hq4,sq200,skv300,d64,causal,softcap,bias,alibi,sink", R"({"block_q":128,"block_kv":64,"stages":2,"workers":2})"},
    {"NegativeScale", "forward:b1,hq2,sq200,skv200,d128", R"({"block_q":128,"block_kv":64,"stages":2,"workers":2})", Layout::heads_first, -0.1f},
    {"NoSlackTopLeft", "forward:b1,hq2,sq300,skv200,d128,causal,topleft", R"({"block_q":128,"block_kv":128,"stages":2,"workers":2,"slack":0})", Layout::packed},
    {"OneQueryOneKey", "forward:b1,hq1,sq1,skv1,d64", R"({"block_q":64,"block_kv":64,"stages":2,"workers":1})", Layout::transposed},
    {"Gapped", "forward:b2,hq2,sq70,skv90,d128", R"({"block_q":64,"block_kv":64,"stages":2,"workers":1})", Layout::gapped},
    {"PlainAligned", "forward:b1,hq4,hkv2,sq300,skv333,d128", R"({"block_q":128,"block_kv":64,"stages":2,"workers":8})", Layout::rows_first, 0, true},
    {"PlainPersistent", "forward:b9,hq16,sq200,skv200,d64,causal", R"({"block_q":64,"block_kv":64,"stages":2,"workers":4,"persistent":1})", Layout::rows_first, 0, true},
    {"PlainOverlapped", "forward:b1,hq4,sq200,skv333,d64,fp16,causal", R"({"block_q":64,"block_kv":64,"stages":2,"workers":4,"overlapped":1})", Layout::rows_first, 0, true},
    {"PlainPackedHeads", "forward:b2,hq12,hkv2,sq23,skv300,d64", R"({"block_q":64,"block_kv":64,"stages":2,"workers":4,"packs_heads":1})", Layout::rows_first, 0, true},
    {"PlainWideHeads", "forward:b1,hq2,sq100,skv200,d256", R"({"block_q":64,"block_kv":32,"stages":1,"workers":4})", Layout::rows_first, 0, true},
    {"Unaligned", "forward:b2,hq2,sq100,skv133,d64,causal", R"({"block_q":64,"block_kv":64,"stages":2,"workers":4})", Layout::unaligned},
    {"OddHeads", "forward:b2,hq2,sq100,skv133,d37,dv19,fp16", R"({"block_q":64,"block_kv":64,"stages":2,"workers":4})", Layout::unaligned},
    {"UnalignedVariants", "forward:b1,hq4,sq100,skv150,d64,window70:0,softcap,bias,alibi,sink", R"({"block_q":64,"block_kv":64,"stages":2,"workers":4})", Layout::unaligned},
    {"Float", "forward:b1,hq4,hkv2,sq100,skv133,d64,fp32,causal", R"({"block_q":64,"block_kv":32,"stages":1,"workers":4})"},
    {"FloatUnaligned", "forward:b1,hq2,sq70,skv90,d40,fp32", R"({"block_q":64,"block_kv":32,"stages":1,"workers":4})", Layout::unaligned},
};

class NvidiaKernels : public testing::TestWithParam<Case> {
protected:
    static WorkloadOptions options_of(const Case& c) {
        WorkloadOptions options;
        options.layout = c.layout;
        if (c.scale != 0) options.scale = c.scale;
        return options;
    }
};

TEST_P(NvidiaKernels, IsRight) {
    const Case& c = GetParam();
    std::optional<Arch> arch = test::nvidia_arch();
    if (!arch) GTEST_SKIP() << "no NVIDIA device";
    if (c.plain) arch->family = Family::sm80;
    auto problem = parse_problem(c.problem);
    ASSERT_TRUE(problem.ok()) << problem.status().message();
    CheckOptions options;
    options.workload = options_of(c);
    options.runs = 3;
    auto prepared = prepare_check(*problem, options);
    ASSERT_TRUE(prepared.ok()) << prepared.status().message();
    KernelSpec spec = test::spec_of(prepared->workload, *parse_config(c.config));
    auto built = test::build(spec, *arch);
    ASSERT_TRUE(built.ok()) << built.status().message();
    auto resources = nvidia_backend().inspect(built->object);
    ASSERT_TRUE(resources.ok());
    EXPECT_EQ(nvidia::reason_to_reject(built->object.log, *resources), "");
    auto device = nvidia_backend().open(0);
    ASSERT_TRUE(device.ok()) << device.status().message();
    auto kernel = (*device)->load(built->object, spec, built->source);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    auto report = check(**device, {{{spec}, 0, false, {}, {}}, {kernel->get()}}, *prepared);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_TRUE(report->passed) << report->failure;
}

INSTANTIATE_TEST_SUITE_P(, NvidiaKernels, testing::ValuesIn(cases), [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace tilewright
