// Bundles replayed on fibers: nothing but their own buffers, arguments and order of launches, and what they expect comes out.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>

#include "backward.h"
#include "decode.h"
#include "verify/check_backward.h"
#include "verify/device_workload.h"
#include "verify/workload_bundle.h"

namespace tilewright::emulated {

std::vector<DecodeKernel> cdna_decode_kernels();
std::vector<DecodeKernel> rdna4_decode_kernels();

namespace {

// The emulated kernels are compiled already.
struct NoCompiler : Backend {
    const char* name() const override { return "amd"; }
    Result<std::string> toolchain() override { return std::string("fibers"); }
    Result<CodeObject> compile(const KernelSource&, const Arch&) override { return Status(StatusCode::unsupported, "compiles nothing"); }
    Result<Resources> inspect(const CodeObject&) override { return Resources(); }
    Result<std::vector<DeviceInfo>> devices() override { return std::vector<DeviceInfo>(); }
    Result<std::unique_ptr<Device>> open(int) override { return Status(StatusCode::unsupported, "has no device"); }
};

Bundle make(const PreparedCheck& prepared, const Config& config, const char* arch_name) {
    const Arch& arch = *find_arch(arch_name);
    auto plan = plan_operation(prepared.workload.problem, config, arch, traits_of(prepared.workload));
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    if (!plan.ok()) return {};
    std::vector<BuiltKernel> kernels;
    for (const KernelSpec& spec : plan->kernels) kernels.push_back({{.text = "", .entry = name(spec.kind), .threads = 1}, {arch_name, "code", ""}});
    NoCompiler backend;
    auto bundle = make_bundle(backend, arch, prepared, *plan, kernels);
    EXPECT_TRUE(bundle.ok()) << bundle.status().message();
    return bundle.ok() ? *bundle : Bundle{};
}

// As docs/bundle.md says: buffers at multiples of 256, addresses put into the arguments, one launch after another.
template <class Parameters, class Run>
std::string replay(const Bundle& bundle, Run&& run) {
    std::deque<std::vector<char>> memory;
    std::map<std::string, char*> at;
    for (const BundleBuffer& buffer : bundle.buffers) {
        memory.emplace_back(buffer.contents.size() + 256);
        char* address = memory.back().data() + (256 - reinterpret_cast<uintptr_t>(memory.back().data()) % 256);
        std::memcpy(address, buffer.contents.data(), buffer.contents.size());
        at[buffer.name] = address;
    }
    for (const BundleLaunch& launch : bundle.launches) {
        Parameters parameters{};
        EXPECT_LE(launch.arguments.size(), sizeof parameters);  // a backward's may have more members than its kernels take
        std::memcpy(static_cast<void*>(&parameters), launch.arguments.data(), launch.arguments.size());
        for (const BundleField& field : launch.fields)
            if (field.kind == "pointer" && !field.buffer.empty()) {
                char* address = at.at(field.buffer) + field.buffer_offset;
                std::memcpy(reinterpret_cast<char*>(&parameters) + field.offset, &address, sizeof address);
            }
        run(launch, parameters);
    }
    std::vector<std::string> results;
    for (const BundleBuffer& buffer : bundle.buffers) results.emplace_back(at.at(buffer.name), buffer.contents.size());
    return check_bundle(bundle, results);
}

Pass pass_of(const std::string& kernel) {
    if (kernel == "attention_backward_prologue") return Pass::prologue;
    if (kernel == "attention_backward_keys") return Pass::keys;
    if (kernel == "attention_backward_queries") return Pass::queries;
    EXPECT_EQ(kernel, "attention_backward_sink");
    return Pass::sink;
}

// Whose two passes have one shape of tiles, as the plan has it for a square config.
void replay_backward(std::vector<EmulatedBackward> kernels, const char* arch) {
    int replayed = 0;
    for (const EmulatedBackward& k : kernels) {
        if (k.block_q != k.block_kv || k.problem.find("bias") != k.problem.npos) continue;  // a bundle holds no backward with a bias
        CheckOptions options;
        options.workload.layout = k.aligned ? Layout::gapped : Layout::unaligned, options.workload.softcap = 2;
        auto prepared = prepare_check(*parse_problem("backward:" + k.problem + ",b2,hq8,hkv2,sq21,skv75"), options);
        ASSERT_TRUE(prepared.ok()) << prepared.status().message();
        Config config;
        config.block_q = k.block_q, config.block_kv = k.block_kv;
        const Bundle bundle = make(*prepared, config, arch);
        ASSERT_EQ(bundle.launches.size(), prepared->workload.problem.sink ? 4u : 3u);
        EXPECT_EQ(bundle.expected.size(), prepared->workload.problem.sink ? 4u : 3u);
        auto run = [&](const BundleLaunch& launch, const kernel::BackwardParameters& p) {
            EXPECT_EQ(launch.grid[0], p.forward.tiles);
            EXPECT_EQ(k.run(pass_of(launch.kernel), p, 0), "");
        };
        EXPECT_EQ(replay<kernel::BackwardParameters>(bundle, run), "") << k.name;
        Bundle out_of_order = bundle;
        std::swap(out_of_order.launches[0], out_of_order.launches[1]);
        EXPECT_NE(replay<kernel::BackwardParameters>(out_of_order, run), "") << k.name << " without its prologue";
        ++replayed;
    }
    EXPECT_GT(replayed, 0);
}

TEST(AmdBundles, OfABackwardHoldItsLaunchesInOrderAndTheirWorkspace) {
    replay_backward(cdna_backward(), "gfx90a");
    replay_backward(cdna_backward(), "gfx942");  // whose dies change the order of work, which the sections follow
    replay_backward(rdna3_backward(), "gfx1100");
    replay_backward(rdna4_backward(), "gfx1201");
}

TEST(AmdBundles, OfADecodeHoldTheWorkspaceOfItsParts) {
    for (auto [list, arch] : {std::pair{&cdna_decode_kernels, "gfx942"}, std::pair{&rdna4_decode_kernels, "gfx1201"}})
        for (const DecodeKernel& k : list()) {
            const std::string text = std::string(k.problem) + ",b3" + (k.paged ? ",page16" : "");
            auto problem = parse_problem(text);
            ASSERT_TRUE(problem.ok()) << text;
            CheckOptions options;
            options.workload.layout = problem->head_dim % 8 ? Layout::unaligned : Layout::rows_first;
            auto prepared = prepare_check(*problem, options);
            ASSERT_TRUE(prepared.ok()) << prepared.status().message();
            Config config;
            config.block_q = k.block_q, config.packs_heads = 1, config.block_kv = 32;
            const Bundle bundle = make(*prepared, config, arch);
            ASSERT_EQ(bundle.launches.size(), 1u);
            EXPECT_GT(bundle.launches[0].grid[0], 2);
            auto run = [&](const BundleLaunch& launch, const kernel::DecodeParameters& p) { EXPECT_EQ(k.run(p, static_cast<int>(launch.grid[0]), 1), ""); };
            EXPECT_EQ(replay<kernel::DecodeParameters>(bundle, run), "") << text;
        }
}

}  // namespace
}  // namespace tilewright::emulated
