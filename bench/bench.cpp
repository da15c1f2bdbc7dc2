// The functions of bench.h over the NVIDIA backend.
#include "bench/bench.h"

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backends/launch.h"
#include "backends/registry.h"
#include "bench/last_error.h"
#include "bench/load_kernel.h"
#include "model/space.h"

namespace {

using namespace tilewright;

thread_local std::string last_text;

struct Call {
    Kernel* kernel;
    kernel::ForwardParameters parameters;
};
// Never destroyed: the driver may be gone before static destructors run.
std::mutex mutex;
auto& devices = *new std::list<std::unique_ptr<Device>>;
auto& kernels = *new std::list<std::unique_ptr<Kernel>>;
auto& calls = *new std::list<Call>;

template <class T>
std::optional<T> unwrap(Result<T> result) {
    if (result.ok()) return *std::move(result);
    bench::fail(result.status());
    return std::nullopt;
}

Result<std::unique_ptr<Kernel>> load(Device& device, const char* problem_text, const char* config_text) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, parse_problem(problem_text));
    TILEWRIGHT_ASSIGN_OR_RETURN(Config config, parse_config(config_text));
    return bench::load_kernel(device, dense_spec(problem, config));
}

}  // namespace

const char* tilewright_bench_error() { return bench::last_error().c_str(); }

void* tilewright_bench_open(int index) {
    auto device = unwrap(nvidia_backend().open(index));
    if (!device) return nullptr;
    std::lock_guard lock(mutex);
    return devices.emplace_back(*std::move(device)).get();
}

void* tilewright_bench_load(void* device, const char* problem, const char* config) {
    auto loaded = unwrap(load(*static_cast<Device*>(device), problem, config));
    if (!loaded) return nullptr;
    std::lock_guard lock(mutex);
    return kernels.emplace_back(*std::move(loaded)).get();
}

const char* tilewright_bench_canonical(const char* text) {
    auto config = unwrap(parse_config(text));
    if (!config) return nullptr;
    last_text = to_json(*config);
    return last_text.c_str();
}

const char* tilewright_bench_ranked(void* device, const char* problem_text, int count) {
    auto problem = unwrap(parse_problem(problem_text));
    if (!problem) return nullptr;
    last_text.clear();
    for (const Config& config : ranked(search_space(*problem, static_cast<Device*>(device)->info().arch), (size_t)count)) last_text += to_json(config) + "\n";
    return last_text.c_str();
}

void* tilewright_bench_call(void* kernel, const char* problem_text, const TilewrightBenchTensor* query, const TilewrightBenchTensor* key,
                            const TilewrightBenchTensor* value, const TilewrightBenchTensor* out, float* lse) {
    auto problem = unwrap(parse_problem(problem_text));
    if (!problem) return nullptr;
    auto strides = [](const TilewrightBenchTensor& t) { return tilewright::kernel::Strides{t.batch, t.head, t.row}; };
    Call call{static_cast<Kernel*>(kernel), sized_parameters(*problem, default_scale(*problem), 0)};
    call.parameters.query = query->address, call.parameters.query_strides = strides(*query);
    call.parameters.key = key->address, call.parameters.key_strides = strides(*key);
    call.parameters.value = value->address, call.parameters.value_strides = strides(*value);
    call.parameters.out = out->address, call.parameters.out_strides = strides(*out);
    call.parameters.lse = lse;
    std::lock_guard lock(mutex);
    return &calls.emplace_back(call);
}

int tilewright_bench_launch(void* device, void* prepared, void* stream) {
    Call& call = *static_cast<Call*>(prepared);
    Status launched = static_cast<Device*>(device)->launch(*call.kernel, call.parameters, stream);
    if (launched.ok()) return 0;
    bench::fail(launched);
    return 1;
}
