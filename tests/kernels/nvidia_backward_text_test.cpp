// Every kernel of a backward compiles for NVIDIA as it is planned, without spills; tiles that cannot run are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/backward_plan.h"
#include "backends/family_text.h"
#include "backends/nvidia/nvidia_backend.h"
#include "backends/nvidia/nvrtc.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

struct Case {
    const char* name;
    const char* arch;
    const char* problem;
    int kernels;  // of the plan: 4 where dK and dV have a pass each, one more with a sink, and with a bias
    bool aligned = true, packed = false;
    friend void PrintTo(const Case& c, std::ostream* out) { *out << c.arch << " " << c.problem; }
};

class NvidiaBackwardText : public testing::TestWithParam<Case> {};

TEST_P(NvidiaBackwardText, CompilesWithoutSpills) {
    const Case& c = GetParam();
    if (!nvidia::nvrtc_info().ok()) GTEST_SKIP() << nvidia::nvrtc_info().status().message();
    const Arch& arch = *find_arch(c.arch);
    Problem problem = *parse_problem(c.problem);
    problem.packed = c.packed;
    std::vector<BackwardLaunch> plan = backward_plan(problem, default_backward_config(problem, arch, c.aligned), arch, c.aligned);
    EXPECT_EQ((int)plan.size(), c.kernels);
    for (const BackwardLaunch& launch : plan) {
        KernelSpec spec{launch.kind, problem, launch.config};
        spec.aligned = c.aligned;
        auto source = generate(spec, arch);
        ASSERT_TRUE(source.ok()) << name(launch.kind) << ": " << source.status().message();
        auto object = nvidia_backend().compile(*source, arch);
        ASSERT_TRUE(object.ok()) << name(launch.kind) << ": " << object.status().message();
        auto resources = nvidia_backend().inspect(*object);
        ASSERT_TRUE(resources.ok()) << resources.status().message();
        EXPECT_EQ(nvidia::reason_to_reject(object->log, *resources), "") << name(launch.kind) << " " << to_json(launch.config);
    }
}

const Case cases[] = {
    {"Hopper128", "sm_90a", "backward:d128,causal", 3},
    {"Hopper128Persistent", "sm_90a", "backward:sq4096,d128,causal", 2},
    {"Hopper128FullPersistent", "sm_90a", "backward:sq4096,d128", 2},
    {"Hopper128WindowPersistent", "sm_90a", "backward:sq4096,d128,sink,window600:7,fp16", 3},
    {"Hopper96Persistent", "sm_90a", "backward:sq4096,d96,dv64,causal", 2},
    {"Hopper128Full", "sm_90a", "backward:d128,fp16", 3},
    {"Hopper64", "sm_90a", "backward:d64", 2},
    {"Hopper64Causal", "sm_90a", "backward:d64,causal", 2},
    {"HopperHalfPanels", "sm_90a", "backward:d40,dv72,window5:7,fp16", 3},
    {"HopperSoftcap128", "sm_90a", "backward:d128,softcap,window5:7,sink", 5},
    {"HopperUnaligned", "sm_90a", "backward:d64,alibi", 3, false},
    {"HopperRepeatable64", "sm_90a", "backward:d64,sq4096,deterministic", 3},
    {"HopperRepeatable64Causal", "sm_90a", "backward:d64,sq4096,causal,deterministic", 3},
    {"HopperRepeatable64Window", "sm_90a", "backward:d64,sq4096,window600:7,sink,fp16,deterministic", 3},
    {"HopperRepeatable64Softcap", "sm_90a", "backward:d64,sq4096,softcap,causal,deterministic", 3},
    {"HopperRepeatable64Alibi", "sm_90a", "backward:d64,sq4096,alibi,deterministic", 3},
    {"HopperRepeatable128", "sm_90a", "backward:d128,sq4096,deterministic", 2},
    {"HopperRepeatable128Causal", "sm_90a", "backward:d128,sq512,causal,deterministic", 2},
    {"HopperRepeatable128Window", "sm_90a", "backward:d128,sq4096,window600:7,sink,deterministic", 3},
    {"HopperRepeatable128Alibi", "sm_90a", "backward:d128,sq4096,alibi,deterministic", 3},
    {"Hopper256", "sm_90a", "backward:d256,skv4096,causal", 4},
    {"Hopper256Full", "sm_90a", "backward:d256,skv4096,fp16", 4},
    {"Hopper256Window", "sm_90a", "backward:d256,skv4096,window5:7,alibi", 4},
    {"Hopper256Repeatable", "sm_90a", "backward:d256,causal,deterministic", 4},
    {"Hopper256Softcap", "sm_90a", "backward:d256,softcap,window5:7,alibi,sink", 5},
    {"Hopper192", "sm_90a", "backward:d192,dv128,skv4096,causal", 4},
    {"Hopper136", "sm_90a", "backward:d136,dv248,window5:7,fp16", 4},
    {"HopperFloat", "sm_90a", "backward:d128,fp32", 3},
    {"HopperBias", "sm_90a", "backward:d128,causal,bias", 4},
    {"AmpereBias64", "sm_80", "backward:d64,bias,softcap,alibi,window5:7,fp16", 4},
    {"AmpereBiasUnaligned", "sm_80", "backward:d37,dv19,bias,sink", 5, false},
    {"AdaBiasFloat", "sm_89", "backward:d128,fp32,bias,causal", 4},
    {"HopperPacked", "sm_90a", "backward:d128,causal", 3, true, true},
    {"AmperePacked", "sm_80", "backward:d64,sink,window5:7,fp16", 4, true, true},
    {"Ampere64", "sm_80", "backward:d64,fp16", 3},
    {"Ampere128", "sm_80", "backward:d128,causal", 3},
    {"AmpereEveryVariant", "sm_80", "backward:d80,dv40,softcap,alibi,sink,window5:7", 4},
    {"Ampere192", "sm_80", "backward:d192,dv128,causal", 4},
    {"AmpereUnaligned", "sm_80", "backward:d37,dv19,fp16", 3, false},
    {"AdaFloat256", "sm_89", "backward:d256,fp32,causal", 4},
};
INSTANTIATE_TEST_SUITE_P(, NvidiaBackwardText, testing::ValuesIn(cases), [](const auto& tested) { return std::string(tested.param.name); });

TEST(NvidiaBackwardTexts, APlanIsNeverWithoutAPass) {
    Problem problem = *parse_problem("backward:d576,dv512,fp32");
    std::vector<BackwardLaunch> plan = backward_plan(problem, default_backward_config(problem, *find_arch("sm_80"), true), *find_arch("sm_80"), true);
    ASSERT_EQ(plan.size(), 4u);
    for (size_t i = 1; i < plan.size(); ++i) EXPECT_EQ(generate({plan[i].kind, problem, plan[i].config}, *find_arch("sm_80")).status().code(), StatusCode::unsupported) << i;
}

TEST(NvidiaBackwardTexts, RefuseWhatCannotRunWithTheValueAndTheLimit) {
    struct Refusal {
        const char *problem, *config, *value, *limit;
    };
    for (const Refusal& r : {
             Refusal{"backward:d64", R"({"block_q":64,"block_kv":64,"workers":8})", "block_kv is 64", "16 rows for each of 8"},
             {"backward:d64", R"({"block_q":24,"block_kv":64,"workers":4})", "block_q is 24", "multiple of 16"},
             {"backward:d64", R"({"block_q":96,"block_kv":64,"workers":4})", "block_q is 96", "must divide 128"},
             {"backward:d128", R"({"block_q":64,"block_kv":128,"workers":4})", "registers of a thread, estimated, is 444", "255"},
             {"backward:d128", R"({"block_q":64,"block_kv":64,"workers":4,"stages":8})", "shared bytes of a block is", "166912"},
         }) {
        KernelSpec spec{KernelKind::attention_backward_keys, *parse_problem(r.problem), *parse_config(r.config)};
        auto text = nvidia_text(spec, *find_arch("sm_80"));
        ASSERT_FALSE(text.ok()) << r.config;
        EXPECT_EQ(text.status().code(), StatusCode::unsupported);
        EXPECT_THAT(text.status().message(), HasSubstr(r.value));
        EXPECT_THAT(text.status().message(), HasSubstr(r.limit));
    }
}

TEST(NvidiaBackwardTexts, RefuseSumsOfTheQueriesThatFindNoRoomOnHopper) {
    struct Refusal {
        const char *problem, *config, *value, *limit;
    };
    for (const Refusal& r : {
             Refusal{"backward:d64", R"({"block_q":32,"block_kv":128,"workers":2,"stages":2,"dq":1})", "block_q is 32", "64 or 128"},
             {"backward:d128", R"({"block_q":128,"block_kv":128,"workers":2,"stages":1,"dq":1})", "registers of a thread, estimated,", "240"},
             {"backward:d128", R"({"block_q":64,"block_kv":128,"workers":2,"stages":4,"dq":2})", "shared bytes of a block", "232448"},
             {"backward:d64", R"({"block_q":64,"block_kv":128,"workers":2,"stages":2,"persistent":1})", "persistent is 1", "must be"},
             {"backward:d128", R"({"block_q":64,"block_kv":128,"workers":2,"stages":3,"dq":1,"persistent":1})", "shared bytes of a block", "232448"},
             {"backward:d256", R"({"block_q":64,"block_kv":128,"workers":2,"stages":2,"dq":1,"persistent":1})", "persistent is 1", "must be"},
             {"backward:d256", R"({"block_q":64,"block_kv":128,"workers":2,"stages":2,"dq":2})", "dq is 2", "0 or 1"},
             {"backward:d256", R"({"block_q":32,"block_kv":128,"workers":2,"stages":2,"dq":1})", "block_q is 32", "64 queries"},
             {"backward:d256", R"({"block_q":128,"block_kv":128,"workers":2,"stages":1})", "registers of a thread, estimated,", "240"},
             {"backward:d256", R"({"block_q":64,"block_kv":128,"workers":2,"stages":3})", "shared bytes of a block", "232448"},
             {"backward:d64,fp32", R"({"block_q":64,"block_kv":64,"workers":4,"dq":1})", "dq is 1", "it must be 0"},
         }) {
        KernelSpec spec{KernelKind::attention_backward_keys, *parse_problem(r.problem), *parse_config(r.config)};
        if (takes_sm90_wide_backward(spec.problem, *find_arch("sm_90a"), true)) spec.kind = KernelKind::attention_backward_keys_alone;
        auto text = nvidia_text(spec, *find_arch("sm_90a"));
        ASSERT_FALSE(text.ok()) << r.config;
        EXPECT_THAT(text.status().message(), HasSubstr(r.value));
        EXPECT_THAT(text.status().message(), HasSubstr(r.limit));
    }
}

}  // namespace
}  // namespace tilewright
