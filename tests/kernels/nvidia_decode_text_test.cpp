// The texts of NVIDIA's decode kernels compile without spills; what cannot run is refused with the value and the limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/family_text.h"
#include "backends/nvidia/nvidia_backend.h"
#include "backends/nvidia/nvrtc.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

KernelSpec spec_of(const char* problem, const char* config, bool paged, bool aligned) {
    KernelSpec spec;
    spec.kind = KernelKind::attention_decode;
    spec.problem = *parse_problem(problem);
    spec.config = *parse_config(config);
    spec.paged = paged, spec.aligned = aligned;
    return spec;
}

struct Case {
    const char *name, *arch, *problem, *config;
    bool paged = false, aligned = true;
    friend void PrintTo(const Case& c, std::ostream* out) { *out << c.arch << " " << c.problem << " " << c.config; }
};

class NvidiaDecodeText : public testing::TestWithParam<Case> {};

TEST_P(NvidiaDecodeText, CompilesWithoutSpillsOrSerialisedProducts) {
    const Case& c = GetParam();
    if (!nvidia::nvrtc_info().ok()) GTEST_SKIP() << nvidia::nvrtc_info().status().message();
    const Arch& arch = *find_arch(c.arch);
    auto source = generate(spec_of(c.problem, c.config, c.paged, c.aligned), arch);
    ASSERT_TRUE(source.ok()) << source.status().message();
    auto object = nvidia_backend().compile(*source, arch);
    ASSERT_TRUE(object.ok()) << object.status().message();
    auto resources = nvidia_backend().inspect(*object);
    ASSERT_TRUE(resources.ok()) << resources.status().message();
    EXPECT_EQ(nvidia::reason_to_reject(object->log, *resources), "");
}

const Case cases[] = {
    {"Warps", "sm_90a", "decode:hq4,hkv1,d128", R"({"block_q":16,"block_kv":128,"stages":2,"workers":4,"early_kb":128})"},
    {"WarpsTwoBlocks", "sm_90a", "decode:hq4,hkv1,d128", R"({"block_q":16,"block_kv":64,"stages":2,"workers":2,"blocks":2})"},
    {"WarpsPaged", "sm_90a", "decode:hq4,hkv1,d64,fp16", R"({"block_q":16,"block_kv":256,"stages":2,"workers":4,"early_kb":128})", true},
    {"WarpsEveryVariant", "sm_90a", "decode:hq4,hkv1,sq4,d128,window9:3,softcap,bias,alibi,sink", R"({"block_q":16,"block_kv":128,"stages":2,"workers":4})", true},
    {"Warpgroup", "sm_90a", "decode:hq4,hkv1,sq16,d128,causal", R"({"block_q":64,"block_kv":128,"stages":3,"workers":1,"early_kb":128})", true},
    {"WarpgroupEveryVariant", "sm_90a", "decode:hq4,hkv1,sq16,d128,window9:3,softcap,bias,alibi,sink", R"({"block_q":64,"block_kv":64,"stages":3,"workers":1})", true},
    {"WarpgroupPanelsNotWhole", "sm_90a", "decode:hq4,hkv1,sq16,d80,dv40,causal", R"({"block_q":64,"block_kv":128,"stages":3,"workers":1})"},
    {"Ampere", "sm_80", "decode:hq4,hkv1,sq4,d128,window9:3,softcap,bias,alibi,sink", R"({"block_q":16,"block_kv":64,"stages":2,"workers":1})", true},
    {"AmpereFloat", "sm_80", "decode:hq4,hkv1,sq4,d64,fp32,causal", R"({"block_q":16,"block_kv":32,"stages":2,"workers":1})"},
    {"HopperUnaligned", "sm_90a", "decode:hq4,hkv1,d37,dv21,bias", R"({"block_q":16,"block_kv":64,"stages":2,"workers":1})", true, false},
};
INSTANTIATE_TEST_SUITE_P(, NvidiaDecodeText, testing::ValuesIn(cases), [](const auto& tested) { return std::string(tested.param.name); });

TEST(NvidiaDecodeTexts, RefuseWhatCannotRunWithTheValueAndTheLimit) {
    struct Refusal {
        const char *problem, *config, *value, *limit;
        bool paged = false;
    };
    for (const Refusal& r : {
             Refusal{"decode:d128", R"({"block_q":32,"block_kv":64,"workers":2})", "block_q is 32", "16 rows by warps or 64"},
             {"decode:d128", R"({"block_q":64,"block_kv":64,"workers":4})", "workers is 4", "must be 1"},
             {"decode:d128", R"({"block_q":16,"block_kv":96,"workers":4})", "block_kv is 96", "16 keys for each of 4"},
             {"decode:d128", R"({"block_q":16,"block_kv":96,"workers":2})", "block_kv is 96", "powers of two", true},
             {"decode:d128", R"({"block_q":16,"block_kv":64,"workers":4,"overlapped":1})", "overlapped is 1", "must be 0"},
             {"decode:d128", R"({"block_q":16,"block_kv":64,"workers":4,"early_kb":2000})", "early_kb is 2000", "1024"},
             {"decode:d256", R"({"block_q":16,"block_kv":128,"workers":4,"stages":2})", "shared bytes of a block is", "232448"},
             {"decode:d128", R"({"block_q":64,"block_kv":64,"workers":1,"blocks":2})", "registers of a thread, estimated, is 144", "128"},
         }) {
        auto text = nvidia_text(spec_of(r.problem, r.config, r.paged, true), *find_arch("sm_90a"));
        ASSERT_FALSE(text.ok()) << r.config;
        EXPECT_EQ(text.status().code(), StatusCode::unsupported);
        EXPECT_THAT(text.status().message(), HasSubstr(r.value));
        EXPECT_THAT(text.status().message(), HasSubstr(r.limit));
    }
}

}  // namespace
}  // namespace tilewright
