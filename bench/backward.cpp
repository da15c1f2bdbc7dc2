// The functions of bench.h that measure backwards.
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/backward_plan.h"
#include "backends/launch.h"
#include "backends/registry.h"
#include "bench/bench.h"
#include "bench/last_error.h"
#include "bench/load_kernel.h"

namespace {

using namespace tilewright;

struct Kernels {
    Config config;
    std::vector<std::unique_ptr<Kernel>> all;
};
struct Call {
    const Kernels* kernels;
    kernel::BackwardParameters parameters;
};
// Never destroyed: the driver may be gone before static destructors run.
std::mutex mutex;
auto& loaded = *new std::list<Kernels>;
auto& calls = *new std::list<Call>;

Result<Kernels> load(Device& device, const char* problem_text, const std::string& config_text) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, parse_problem(problem_text));
    const Arch& arch = device.info().arch;
    Kernels kernels{default_backward_config(problem, arch, true), {}};
    if (config_text != "{}") {
        TILEWRIGHT_ASSIGN_OR_RETURN(kernels.config, parse_config(config_text));
    }
    for (const BackwardLaunch& launch : backward_plan(problem, kernels.config, arch, true)) {
        TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, bench::load_kernel(device, {launch.kind, problem, launch.config}));
        kernels.all.push_back(std::move(kernel));
    }
    return kernels;
}

}  // namespace

void* tilewright_bench_load_backward(void* device, const char* problem, const char* config) {
    Result<Kernels> kernels = load(*static_cast<Device*>(device), problem, config);
    if (!kernels.ok()) return bench::fail(kernels.status());
    std::lock_guard lock(mutex);
    return &loaded.emplace_back(*std::move(kernels));
}

const char* tilewright_bench_backward_config(void* kernels) {
    thread_local std::string text;
    text = tilewright::to_json(static_cast<Kernels*>(kernels)->config);
    return text.c_str();
}

int64_t tilewright_bench_backward_workspace(void* kernels, const char* problem) {
    return backward_workspace(*parse_problem(problem), static_cast<Kernels*>(kernels)->config).bytes();
}

void* tilewright_bench_call_backward(void* kernels, const char* problem_text, const TilewrightBenchTensor* t, float* lse, void* workspace) {
    Result<Problem> problem = parse_problem(problem_text);
    if (!problem.ok()) return bench::fail(problem.status());
    auto strides = [](const TilewrightBenchTensor& x) { return tilewright::kernel::Strides{x.batch, x.head, x.row}; };
    Call call{static_cast<Kernels*>(kernels), {}};
    kernel::BackwardParameters& p = call.parameters;
    p.forward = sized_parameters(*problem, default_scale(*problem), 0);
    p.forward.query = t[0].address, p.forward.query_strides = strides(t[0]);
    p.forward.key = t[1].address, p.forward.key_strides = strides(t[1]);
    p.forward.value = t[2].address, p.forward.value_strides = strides(t[2]);
    p.forward.out = t[3].address, p.forward.out_strides = strides(t[3]);
    p.forward.lse = lse;
    p.out_gradient = t[4].address, p.out_gradient_strides = strides(t[4]);
    p.query_gradient = t[5].address, p.query_gradient_strides = strides(t[5]);
    p.key_gradient = t[6].address, p.key_gradient_strides = strides(t[6]);
    p.value_gradient = t[7].address, p.value_gradient_strides = strides(t[7]);
    use_workspace(backward_workspace(*problem, call.kernels->config), workspace, p);
    std::lock_guard lock(mutex);
    return &calls.emplace_back(call);
}

int tilewright_bench_launch_backward(void* device, void* prepared, void* stream) {
    Call& call = *static_cast<Call*>(prepared);
    for (const std::unique_ptr<Kernel>& kernel : call.kernels->all)
        if (Status launched = static_cast<Device*>(device)->launch(*kernel, call.parameters, stream); !launched.ok()) return bench::fail(launched), 1;
    return 0;
}
