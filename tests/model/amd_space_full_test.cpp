// The default space of forward attention on AMD, through the real compiler: what defaults spill, and a sample of all candidates.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "model/amd_compiled.h"
#include "model/candidate_share.h"

namespace tilewright {
namespace {

const char* const archs[] = {"gfx90a", "gfx942", "gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201"};
const char* const accepted[] = {"gfx90a", "gfx942", "gfx1100", "gfx1201"};

// Head dims, types and masks of the default space.
std::vector<std::string> kinds() {
    std::vector<std::string> result;
    for (const char* head_dim : {"d64", "d128", "d256"})
        for (const char* dtype : {"fp16", "bf16"})
            for (const char* mask : {"", ",causal"}) result.push_back(std::string(head_dim) + "," + dtype + mask);
    return result;
}

// Adds a job unless its kernel's text is among those that were seen.
void add(std::vector<Job>& jobs, std::set<std::string>& seen, const Job& job) {
    const Result<KernelSource> source = generate(dense_spec(job.problem, job.config), *job.arch);
    ASSERT_TRUE(source.ok()) << job.text() << ": " << source.status().message();
    if (seen.insert(job.arch->name + source->text).second) jobs.push_back(job);
}

// RDNA with a bias or a sink beside 128 columns: up to four registers, so many bytes.
constexpr int64_t most_local_bytes = 16;
bool may_spill(const Job& job) { return job.arch->family != Family::cdna && job.problem.head_dim == 128 && (job.problem.bias || job.problem.sink); }

// One test an architecture, so that several run at once.
class AmdSpace : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (auto compiler = golden_compiler(); !compiler.ok()) GTEST_SKIP() << compiler.status().message();
    }
    const Arch& arch = *find_arch(GetParam());
};
std::string arch_of(const testing::TestParamInfo<const char*>& test) { return test.param; }

INSTANTIATE_TEST_SUITE_P(All, AmdSpace, testing::ValuesIn(archs), arch_of);
TEST_P(AmdSpace, DefaultsDoNotSpill) {
    std::vector<Job> jobs;
    std::set<std::string> seen;
    for (const std::string& kind : kinds())
        for (const char* sizes : {"b4,hq16,sq4096", "b1,hq8,sq100,skv300", "b8,hq32,hkv8,sq1,skv8192"}) {
            const Problem problem = *parse_problem("forward:" + std::string(sizes) + "," + kind);
            add(jobs, seen, {&arch, problem, default_config(problem, arch)});
        }
    for (const char* head_dim : {"d64", "d128"})
        for (const char* variant : {"softcap", "bias", "alibi", "sink", "causal,softcap", "causal,bias", "causal,alibi", "causal,sink", "window128:0", "softcap,bias,alibi,sink,causal"}) {
            const Problem problem = *parse_problem("forward:b4,hq16,sq4096," + std::string(head_dim) + ",bf16," + variant);
            add(jobs, seen, {&arch, problem, default_config(problem, arch)});
        }
    compile_all(jobs, [](const Job& job, const Result<Compiled>& compiled) {
        ASSERT_TRUE(compiled.ok()) << job.text() << ": " << compiled.status().message();
        if (may_spill(job)) {
            EXPECT_LE(compiled->resources.local_bytes, most_local_bytes) << job.text();
            return;
        }
        EXPECT_EQ(compiled->resources.vector_spills, 0) << job.text();
        EXPECT_EQ(compiled->resources.scalar_spills, 0) << job.text();
        EXPECT_EQ(compiled->resources.local_bytes, 0) << job.text();
    });
    std::printf("%zu kernels\n", jobs.size());
}

class AmdCandidates : public AmdSpace {};
INSTANTIATE_TEST_SUITE_P(Accepted, AmdCandidates, testing::ValuesIn(accepted), arch_of);

// Every 400th candidate, or another share of them. The order of work does not reach the kernel's code: section_kb is 0.
TEST_P(AmdCandidates, CompileAndTheModelKnowsTheirOccupancy) {
    const CandidateShare share = candidate_share(400);
    std::vector<Job> all, jobs;
    for (const std::string& kind : kinds()) {
        const Problem problem = *parse_problem("forward:b4,hq16,sq4096," + kind);
        for (const Config& config : enumerate(search_space(problem, arch)))
            if (config.section_kb == 0) all.push_back({&arch, problem, config});
    }
    for (size_t i = share.first; i < all.size(); i += share.stride) jobs.push_back(all[i]);
    int spilled = 0, misjudged = 0;
    compile_all(jobs, [&](const Job& job, const Result<Compiled>& compiled) {
        ASSERT_TRUE(compiled.ok()) << job.text() << ": " << compiled.status().message();
        spilled += compiled->resources.vector_spills > 0 || compiled->resources.scalar_spills > 0;
        const auto prediction = predict(compiled->spec, arch, &compiled->resources);
        ASSERT_TRUE(prediction.ok()) << job.text() << ": " << prediction.status().message();
        const bool same = is_occupancy_of(prediction->occupancy, *compiled, arch) && waves_per_simd(compiled->source, compiled->resources, arch) == waves_by_remark(*compiled);
        misjudged += !same;
        EXPECT_TRUE(same) << prediction->occupancy.blocks << " blocks by the model: " << job.text();
    });
    std::printf("%s: %zu of %zu candidates compiled, %d spill, %d occupancies differ\n", GetParam(), jobs.size(), all.size(), spilled, misjudged);
}

}  // namespace
}  // namespace tilewright
