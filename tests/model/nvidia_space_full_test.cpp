// The default space of forward attention on NVIDIA, through the real compiler: defaults of every variant spill four registers at most, and samples of all
// candidates compile.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "backends/nvidia/nvidia_backend.h"
#include "backends/nvidia/nvrtc.h"
#include "model/candidate_share.h"
#include "model/model.h"
#include "model/space.h"

namespace tilewright {
namespace {

const char* const archs[] = {"sm_80", "sm_90a"};

struct Job {
    const Arch* arch;
    Problem problem;
    Config config;
    std::string text() const { return arch->name + " " + to_text(problem) + " " + to_json(config); }
};
struct Compiled {
    CodeObject object;
    Resources resources;
};

Result<Compiled> compile(const Job& job) {
    Backend& backend = nvidia_backend();
    TILEWRIGHT_ASSIGN_OR_RETURN(const KernelSource source, generate(dense_spec(job.problem, job.config), *job.arch));
    Compiled compiled;
    TILEWRIGHT_ASSIGN_OR_RETURN(compiled.object, backend.compile(source, *job.arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(compiled.resources, backend.inspect(compiled.object));
    return compiled;
}

// On all processors; `done` is called on this thread, in the order of the jobs.
void compile_all(const std::vector<Job>& jobs, const std::function<void(const Job&, const Result<Compiled>&)>& done) {
    constexpr size_t at_once = 128;
    for (size_t begin = 0; begin < jobs.size(); begin += at_once) {
        const size_t count = std::min(at_once, jobs.size() - begin);
        std::vector<std::optional<Result<Compiled>>> results(count);
        std::atomic<size_t> next{0};
        {
            std::vector<std::jthread> threads;
            for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
                threads.emplace_back([&] {
                    for (size_t n; (n = next++) < count;) results[n] = compile(jobs[begin + n]);
                });
        }
        for (size_t i = 0; i < count; ++i) done(jobs[begin + i], *results[i]);
    }
}

// A share of them, of those whose kernels' texts differ.
std::vector<Job> sample(const std::vector<Job>& all, const CandidateShare& share) {
    std::vector<Job> some;
    std::set<std::string> seen;
    for (size_t i = share.first; i < all.size(); i += share.stride) {
        const Result<KernelSource> source = generate(dense_spec(all[i].problem, all[i].config), *all[i].arch);
        EXPECT_TRUE(source.ok()) << all[i].text() << ": " << source.status().message();
        if (source.ok() && seen.insert(all[i].arch->name + source->text).second) some.push_back(all[i]);
    }
    return some;
}

// 576 of them: head dims, masks and all variants, a sink with every other one. A plain run takes every 25th.
TEST(NvidiaSpace, DefaultsOfEveryVariantSpillNothingToSpeakOf) {
    if (auto toolchain = nvidia_backend().toolchain(); !toolchain.ok()) GTEST_SKIP() << toolchain.status().message();
    std::vector<Job> all;
    int count = 0;
    for (const char* name : archs)
        for (const char* head_dim : {"d64", "d96", "d128", "d192", "d192,dv128", "d256"})
            for (const char* dtype : {"bf16", "fp16"})
                for (const char* mask : {"", ",causal", ",window256:0"})
                    for (const char* variant : {"", ",softcap", ",bias", ",alibi", ",softcap,alibi", ",bias,alibi", ",softcap,bias", ",softcap,bias,alibi"}) {
                        const Arch& arch = *find_arch(name);
                        const Problem problem = *parse_problem(std::string("forward:b4,hq16,sq4096,") + head_dim + "," + dtype + mask + variant + (count++ % 2 ? ",sink" : ""));
                        all.push_back({&arch, problem, default_config(problem, arch)});
                    }
    const std::vector<Job> jobs = sample(all, candidate_share(25));
    compile_all(jobs, [](const Job& job, const Result<Compiled>& compiled) {
        ASSERT_TRUE(compiled.ok()) << job.text() << ": " << compiled.status().message();
        EXPECT_EQ(nvidia::reason_to_reject(compiled->object.log, compiled->resources, nvidia::candidates_spill_bytes), "") << job.text();
    });
    std::printf("%zu of %zu defaults compiled\n", jobs.size(), all.size());
}

// Every 900th candidate; the order of work does not reach the kernel's code: section_kb is the first.
TEST(NvidiaSpace, CandidatesCompile) {
    if (auto toolchain = nvidia_backend().toolchain(); !toolchain.ok()) GTEST_SKIP() << toolchain.status().message();
    for (const char* name : archs) {
        const Arch& arch = *find_arch(name);
        std::vector<Job> all;
        for (const char* head_dim : {"d64", "d128", "d256"})
            for (const char* dtype : {"fp16", "bf16"})
                for (const char* rest : {"", ",causal", ",causal,packed"}) {
                    const Problem problem = *parse_problem("forward:b4,hq16,sq4096," + std::string(head_dim) + "," + dtype + rest);
                    const Space space = search_space(problem, arch);
                    const auto sections = std::ranges::find(space.fields, std::string("section_kb"), [](const SpaceField& field) { return std::string(field.name); });
                    for (const Config& config : enumerate(space))
                        if (config.section_kb == sections->values[0]) all.push_back({&arch, problem, config});
                }
        const std::vector<Job> jobs = sample(all, candidate_share(900));
        int spilled = 0, refused = 0;
        std::map<int, int> differences;  // of the estimate from the compiler's registers, in tens
        compile_all(jobs, [&](const Job& job, const Result<Compiled>& compiled) {
            ASSERT_TRUE(compiled.ok()) << job.text() << ": " << compiled.status().message();
            EXPECT_GT(compiled->resources.matrix_instructions, 0) << job.text();
            spilled += compiled->resources.local_bytes > 0;
            const std::string reason = nvidia::reason_to_reject(compiled->object.log, compiled->resources, nvidia::candidates_spill_bytes);
            refused += !reason.empty();
            if (!reason.empty()) std::printf("refused, %s: %s\n", reason.c_str(), job.text().c_str());
            const Result<ResourceEstimate> estimate = estimate_resources(dense_spec(job.problem, job.config), arch);
            ASSERT_TRUE(estimate.ok());
            if (compiled->resources.local_bytes > 0)
                std::printf("spills %lld bytes, estimated %d of %d registers: %s\n", (long long)compiled->resources.spill_bytes, estimate->registers, estimate->register_budget, job.text().c_str());
            // On sm_90a the file says what a block is launched with, which is known.
            const int known = arch.family == Family::sm90 ? estimate->registers_held : std::min(estimate->registers, estimate->register_budget);
            ++differences[(compiled->resources.registers - known + (compiled->resources.registers < known ? -5 : 5)) / 10];
        });
        std::printf("%s: %zu of %zu candidates compiled, %d spill, %d are refused; registers less the estimate, in tens:", name, jobs.size(), all.size(), spilled, refused);
        for (const auto& [tens, times] : differences) std::printf(" %d: %d", tens, times);
        std::printf("\n");
        EXPECT_EQ(refused, 0);
    }
}

}  // namespace
}  // namespace tilewright
