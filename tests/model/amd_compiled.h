// Compiles candidates for AMD without a device, in parallel, for tests of what they become.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "backends/amd/compiler.h"
#include "backends/amd/inspect.h"
#include "core/process.h"
#include "model/model.h"
#include "model/space.h"

namespace tilewright {

// The compiler whose counts the golden file holds.
inline Result<amd::Compiler> golden_compiler() {
    std::string path = find_program("clang++-19");
    if (path.empty()) return Status(StatusCode::unavailable, "clang++-19, whose counts the golden file holds, is not installed");
    return amd::Compiler{path, "clang++-19"};
}

struct Compiled {
    KernelSpec spec;
    KernelSource source;
    CodeObject object;
    Resources resources;
};

inline Result<Compiled> compile(const Arch& arch, const Problem& problem, const Config& config, KernelKind kind) {
    TILEWRIGHT_ASSIGN_OR_RETURN(amd::Compiler compiler, golden_compiler());
    Compiled compiled{dense_spec(problem, config), {}, {}, {}};
    compiled.spec.kind = kind, compiled.spec.paged = problem.page_size != 0;
    TILEWRIGHT_ASSIGN_OR_RETURN(compiled.source, generate(compiled.spec, arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(compiled.object, amd::compile(compiler, compiled.source, arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(compiled.resources, amd::inspect(compiled.object));
    return compiled;
}
inline Result<Compiled> compile(const Arch& arch, const Problem& problem, const Config& config) {
    return compile(arch, problem, config, problem.operation == Operation::decode ? KernelKind::attention_decode : KernelKind::attention_forward);
}

// Waves of a SIMD as the compiler's remark has them; -1: there is none.
inline int waves_by_remark(const Compiled& compiled) {
    const std::string key = "Occupancy [waves/SIMD]: ";
    const size_t at = compiled.object.log.find(key);
    return at == std::string::npos ? -1 : atoi(compiled.object.log.c_str() + at + key.size());
}
// Whether these are the model's, whole blocks of a unit. Where LDS is the limit the compiler rounds up: 21 blocks of a wave on four SIMDs are
// 6 waves to it.
inline bool is_occupancy_of(const Occupancy& model, const Compiled& compiled, const Arch& arch) {
    const int by_remark = waves_by_remark(compiled), waves = compiled.source.threads / arch.warp_size;
    if (model.blocks == by_remark * arch.simds_per_unit / waves) return true;
    return model.limit == OccupancyLimit::shared_memory && by_remark == (model.blocks * waves + arch.simds_per_unit - 1) / arch.simds_per_unit;
}

struct Job {
    const Arch* arch;
    Problem problem;
    Config config;
    std::string text() const { return arch->name + " " + to_text(problem) + " " + to_json(config); }
};
// On all processors; `done` is called on this thread, in the order of the jobs.
inline void compile_all(const std::vector<Job>& jobs, const std::function<void(const Job&, const Result<Compiled>&)>& done) {
    const size_t at_once = 64 * std::max(1U, std::thread::hardware_concurrency());  // results of a round are kept until all are there
    for (size_t begin = 0; begin < jobs.size(); begin += at_once) {
        const size_t count = std::min(at_once, jobs.size() - begin);
        std::vector<std::optional<Result<Compiled>>> results(count);
        std::atomic<size_t> next{0};
        auto work = [&] {
            for (size_t i; (i = next++) < count;) results[i] = compile(*jobs[begin + i].arch, jobs[begin + i].problem, jobs[begin + i].config);
        };
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
        for (std::thread& thread : threads) thread.join();
        for (size_t i = 0; i < count; ++i) done(jobs[begin + i], *results[i]);
    }
}

}  // namespace tilewright
