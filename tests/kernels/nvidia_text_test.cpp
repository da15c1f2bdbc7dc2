// The texts of NVIDIA kernels compile for both families, without spills; what cannot run is refused with the value and the limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "backends/family_text.h"
#include "backends/nvidia/nvidia_backend.h"
#include "backends/nvidia/nvrtc.h"
#include "kernels/resources_nvidia.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

KernelSpec spec_of(const char* problem, const char* config, bool aligned = true, bool rescaled = false) {
    KernelSpec spec;
    spec.problem = *parse_problem(problem);
    spec.config = *parse_config(config);
    spec.aligned = aligned, spec.rescaled = rescaled;
    return spec;
}

struct Case {
    const char* name;
    const char* arch;
    const char* problem;
    const char* config;
    bool aligned = true, packed = false;
    friend void PrintTo(const Case& c, std::ostream* out) { *out << c.arch << " " << c.problem << " " << c.config; }
};

class NvidiaText : public testing::TestWithParam<Case> {};

TEST_P(NvidiaText, CompilesInThreeSecondsOfProcessorTimeWithoutSpillsOrSerialisedProducts) {
    const Case& c = GetParam();
    if (!nvidia::nvrtc_info().ok()) GTEST_SKIP() << nvidia::nvrtc_info().status().message();
    const Arch& arch = *find_arch(c.arch);
    KernelSpec spec = spec_of(c.problem, c.config, c.aligned);
    spec.problem.packed = c.packed;
    auto source = generate(spec, arch);
    ASSERT_TRUE(source.ok()) << source.status().message();
    std::clock_t start = std::clock();
    auto object = nvidia_backend().compile(*source, arch);
    double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    ASSERT_TRUE(object.ok()) << object.status().message();
    auto resources = nvidia_backend().inspect(*object);
    ASSERT_TRUE(resources.ok()) << resources.status().message();
    EXPECT_EQ(nvidia::reason_to_reject(object->log, *resources), "");
    EXPECT_LT(seconds, 3);
}

const Case cases[] = {
    {"Hopper128", "sm_90a", "forward:d128", R"({"block_q":192,"block_kv":128,"stages":2,"workers":3,"turns":1,"persistent":1})"},
    {"HopperPacked128", "sm_90a", "forward:d128", R"({"block_q":192,"block_kv":128,"stages":2,"workers":3,"turns":1,"persistent":1})", true, true},
    {"HopperPackedCausal64", "sm_90a", "forward:hq8,hkv2,d64,causal", R"({"block_q":128,"block_kv":128,"stages":2,"workers":2,"packs_heads":1})", true, true},
    {"AmperePacked", "sm_80", "forward:d128,window9:3", R"({"block_q":64,"block_kv":64,"stages":1,"workers":4})", true, true},
    {"Hopper128Causal", "sm_90a", "forward:d128,causal", R"({"block_q":192,"block_kv":128,"stages":2,"workers":3,"turns":1,"persistent":1})"},
    {"Hopper64Overlapped", "sm_90a", "forward:d64,fp16", R"({"block_q":192,"block_kv":128,"stages":2,"workers":3,"turns":1,"overlapped":1,"persistent":1})"},
    {"Hopper256Overlapped", "sm_90a", "forward:d256", R"({"block_q":128,"block_kv":80,"stages":2,"workers":2,"turns":1,"overlapped":1,"persistent":1})"},
    {"HopperTwoBlocks", "sm_90a", "forward:d64,causal", R"({"block_q":128,"block_kv":64,"stages":2,"workers":2,"blocks":2,"turns":1,"persistent":1})"},
    {"HopperPanelsNotWhole", "sm_90a", "forward:d80,dv40,window9:0", R"({"block_q":128,"block_kv":64,"stages":2,"workers":2})"},
    {"HopperTwoHeadDims", "sm_90a", "forward:d192,dv128,causal", R"({"block_q":128,"block_kv":96,"stages":2,"workers":2,"turns":1,"persistent":1})"},
    {"HopperPackedHeads", "sm_90a", "forward:hq8,hkv2,d128,causal", R"({"block_q":64,"block_kv":128,"stages":2,"workers":1,"packs_heads":1})"},
    {"HopperEveryVariant", "sm_90a", "forward:d64,softcap,bias,alibi,sink", R"({"block_q":128,"block_kv":64,"stages":2,"workers":2})"},
    {"HopperFloat", "sm_90a", "forward:d64,fp32,causal", R"({"block_q":64,"block_kv":32,"stages":2,"workers":4})"},
    {"HopperUnaligned", "sm_90a", "forward:d37,dv19,fp16", R"({"block_q":64,"block_kv":64,"stages":2,"workers":4})", false},
    {"Ampere128", "sm_80", "forward:d128,causal", R"({"block_q":128,"block_kv":64,"stages":2,"workers":8,"persistent":1})"},
    {"Ampere128Overlapped", "sm_80", "forward:d128", R"({"block_q":64,"block_kv":64,"stages":2,"workers":4,"overlapped":1})"},
    {"Ampere64", "sm_80", "forward:d64,fp16", R"({"block_q":128,"block_kv":64,"stages":2,"workers":4})"},
    {"Ampere256", "sm_80", "forward:d256", R"({"block_q":64,"block_kv":32,"stages":1,"workers":4})"},
    {"Ampere80Window", "sm_80", "forward:d80,window9:3", R"({"block_q":64,"block_kv":64,"stages":2,"workers":4})"},
    {"AmpereFloat256", "sm_80", "forward:d256,fp32", R"({"block_q":64,"block_kv":32,"stages":1,"workers":4})"},
    {"AdaUnaligned", "sm_89", "forward:d64,bias", R"({"block_q":64,"block_kv":32,"stages":2,"workers":4})", false},
};
INSTANTIATE_TEST_SUITE_P(, NvidiaText, testing::ValuesIn(cases), [](const auto& tested) { return std::string(tested.param.name); });

TEST(NvidiaTexts, HoldTheMatrixInstructionsThatTheTileNeeds) {
    if (!nvidia::nvrtc_info().ok()) GTEST_SKIP() << nvidia::nvrtc_info().status().message();
    auto count = [](const char* arch, const char* problem, const char* config) {
        auto source = generate(spec_of(problem, config), *find_arch(arch));
        return nvidia_backend().inspect(*nvidia_backend().compile(*source, *find_arch(arch)))->matrix_instructions;
    };
    // wgmma: 16 of the depth, then 16 keys each. mma.sync: 16 rows, 8 columns and 16 of the depth each.
    EXPECT_EQ(count("sm_90a", "forward:d80", R"({"block_q":128,"block_kv":64,"stages":2,"workers":2})"), 80 / 16 + 64 / 16);
    EXPECT_EQ(count("sm_80", "forward:d64,dv32", R"({"block_q":64,"block_kv":32,"stages":1,"workers":4})"), 32 / 8 * 64 / 16 + 32 / 8 * 32 / 16);
}

TEST(NvidiaTexts, SayThreadsAndSharedBytes) {
    auto source = generate(spec_of("forward:d128", R"({"block_q":128,"block_kv":64,"stages":2,"workers":2})"), *find_arch("sm_90a"));
    ASSERT_TRUE(source.ok()) << source.status().message();
    EXPECT_EQ(source->threads, 3 * 128);
    EXPECT_EQ(source->shared_bytes, 128 * 128 * 2 + 2 * 2 * 64 * 128 * 2 + 1024 + 1024);
    source = generate(spec_of("forward:d40", R"({"block_q":64,"block_kv":32,"stages":1,"workers":4})"), *find_arch("sm_80"));
    ASSERT_TRUE(source.ok()) << source.status().message();
    EXPECT_EQ(source->threads, 4 * 32);
    EXPECT_EQ(source->shared_bytes, (64 + 2 * 32) * 7 * 16 + 16) << "48 columns are 6 pieces, and rows an odd number of them apart";
}

TEST(NvidiaTexts, RefuseWhatCannotRunWithTheValueAndTheLimit) {
    struct Refusal {
        const char *arch, *problem, *config, *value, *limit;
    };
    for (const Refusal& r : {
             Refusal{"sm_90a", "forward:d128", R"({"block_q":128,"block_kv":64,"workers":1})", "block_q is 128", "64 rows for each of 1"},
             {"sm_90a", "forward:d128", R"({"block_q":256,"block_kv":64,"workers":4})", "workers is 4", "at most 3"},
             {"sm_90a", "forward:d128", R"({"block_q":64,"block_kv":72,"workers":1})", "block_kv is 72", "by 16"},
             {"sm_90a", "forward:d128", R"({"block_q":64,"block_kv":64,"workers":1,"turns":1})", "turns is 1", "must be 0"},
             {"sm_90a", "forward:d256", R"({"block_q":128,"block_kv":128,"stages":2,"workers":2})", "shared bytes of a block is", "232448"},
             {"sm_90a", "forward:d128", R"({"block_q":192,"block_kv":128,"workers":3,"overlapped":1})", "registers of a thread, estimated, is 192", "160"},
             {"sm_90a", "forward:d128", R"({"block_q":64,"block_kv":64,"workers":1,"blocks":3})", "registers of one matrix instruction is 90", "80"},
             {"sm_80", "forward:d128", R"({"block_q":64,"block_kv":64,"workers":8})", "block_q is 64", "16 rows for each of 8"},
             {"sm_80", "forward:d128", R"({"block_q":64,"block_kv":64,"workers":4,"overlapped":1,"stages":1})", "stages is 1", "needs 2"},
             {"sm_80", "forward:d128", R"({"block_q":64,"block_kv":64,"workers":4,"turns":1})", "turns is 1", "must be 0"},
             {"sm_89", "forward:d128,fp32", R"({"block_q":64,"block_kv":64,"stages":2,"workers":4})", "shared bytes of a block is", "101376"},
         }) {
        auto text = nvidia_text(spec_of(r.problem, r.config), *find_arch(r.arch));
        ASSERT_FALSE(text.ok()) << r.arch << " " << r.config;
        EXPECT_EQ(text.status().code(), StatusCode::unsupported);
        EXPECT_THAT(text.status().message(), HasSubstr(r.value));
        EXPECT_THAT(text.status().message(), HasSubstr(r.limit));
    }
}

TEST(NvidiaResources, NeverDealOutMoreRegistersThanWereLaunched) {
    for (int workers = 1; workers <= 3; ++workers)
        for (int blocks = 1; blocks <= 4; ++blocks) {
            if (!kernel::sm90_moves_registers(workers, blocks)) continue;
            int launched = kernel::sm90_registers_launched(workers, blocks), limit = kernel::sm90_register_limit(workers, blocks);
            EXPECT_LE(workers * limit + kernel::sm90_registers_loading(workers), (workers + 1) * launched) << workers << " workers, " << blocks << " blocks";
            EXPECT_LE(128 * (workers + 1) * blocks * launched, 65536);
            EXPECT_EQ(limit % 8, 0);
        }
}

TEST(NvidiaResources, DescribeWholePanelsInOneBoxAndOthersOneByOne) {
    kernel::Strides strides{1 << 20, 128, 4096};
    auto whole = kernel::tensor_map_shape(strides, 128, 100, 8, 2, 64);
    EXPECT_EQ(whole.rank, 5);
    EXPECT_THAT(whole.dims, testing::ElementsAre(64, 100, 2, 8, 2));
    EXPECT_THAT(whole.strides, testing::ElementsAre(8192, 128, 256, 2 << 20)) << "bytes";
    EXPECT_THAT(whole.box, testing::ElementsAre(64, 64, 2, 1, 1));
    auto panels = kernel::tensor_map_shape(strides, 80, 100, 8, 1, 64);
    EXPECT_EQ(panels.rank, 4);
    EXPECT_THAT(panels.dims, testing::ElementsAre(80, 100, 8, 1, 0));
    EXPECT_THAT(panels.strides, testing::ElementsAre(8192, 256, 160, 0)) << "the stride of a single batch is any valid one";
    EXPECT_THAT(panels.box, testing::ElementsAre(64, 64, 1, 1, 0));
}

}  // namespace
}  // namespace tilewright
