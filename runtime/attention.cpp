// Attention calls: check what was given, ask for a config, find the kernel, launch.
#include "tilewright/attention.h"

#include <algorithm>

#include "backends/cpu/cpu_device.h"
#include "backends/launch.h"
#include "runtime/attention_state.h"
#include "runtime/device_class.h"
#include "runtime/forward_parameters.h"

namespace tilewright {

InputTensor dense(const void* data, int64_t heads, int64_t rows, int64_t columns) { return {data, heads * rows * columns, rows * columns, columns, 1}; }
OutputTensor dense(void* data, int64_t heads, int64_t rows, int64_t columns) { return {data, heads * rows * columns, rows * columns, columns, 1}; }

Attention::Attention(std::unique_ptr<State> state) : state_(std::move(state)) {}
Attention::Attention(Attention&&) noexcept = default;
Attention& Attention::operator=(Attention&&) noexcept = default;
Attention::~Attention() = default;

Result<Attention> Attention::open(const AttentionOptions& options) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Backend * backend, find_backend(options.device.substr(0, options.device.find(':'))));
    bool is_cpu = std::string_view(backend->name()) == "cpu";
    if (options.threads < 0 || (options.threads > 0 && !is_cpu))
        return invalid_argument("threads is " + std::to_string(options.threads) + "; it is for the CPU, from 0 (all processors) on");
    TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, is_cpu && options.threads > 0 ? open_cpu(options.threads) : open_device(options.device));
    DatabaseOptions database = options.database;
    database.hooks = lookup_hooks(device->info().arch);
    return Attention(std::make_unique<State>(*backend, std::move(device), TuningDatabase::open(std::move(database)), options.cache_code));
}

Status Attention::forward(const Problem& problem, const ForwardTensors& t, void* stream) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    if (problem.operation != Operation::forward) return {StatusCode::unsupported, "forward() computes forward problems, not " + to_text(problem)};
    if (problem.packed) return {StatusCode::unsupported, "forward_packed() computes packed sequences: " + to_text(problem)};
    const Problem& p = problem;
    const Extent tensors[] = {
        extent("query", t.query, p.batch, p.heads_q, p.seq_q, p.head_dim), extent("key", t.key, p.batch, p.heads_kv, p.seq_kv, p.head_dim),
        extent("value", t.value, p.batch, p.heads_kv, p.seq_kv, p.head_dim_v), extent("out", t.out, p.batch, p.heads_q, p.seq_q, p.head_dim_v)};
    bool aligned = true;
    for (const Extent& tensor : tensors) {
        TILEWRIGHT_RETURN_IF_ERROR(check_extent(tensor));
        aligned = aligned && is_aligned(tensor, static_cast<int64_t>(size_of(p.dtype)));
    }
    TILEWRIGHT_RETURN_IF_ERROR(check_variants(p, t));
    if (p.batch * p.seq_q == 0) return {};

    kernel::ForwardParameters parameters = forward_parameters(p, t, tensors);
    CallTraits traits;
    traits.aligned = aligned, traits.rescaled = !(parameters.scale > 0);
    TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation ready, state_->ready(p, traits));
    return launch(*state_->device, ready.kernels, parameters, stream);
}

Status Attention::prepare(const Problem& problem) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    return state_->ready(problem, dense_traits(problem)).status();
}

Result<int64_t> Attention::State::workspace_bytes(const Problem& problem, CallTraits traits) {
    Config config = database.lookup(problem, device_number).config;
    Result<int64_t> most = Status(StatusCode::internal, "");
    for (bool aligned : {true, false})
        for (bool paged : {false, true}) {
            traits.aligned = aligned && dense_traits(problem).aligned, traits.paged = paged && problem.operation == Operation::decode;
            Result<OperationPlan> plan = kernels.plan(problem, config, traits);
            if (plan.ok()) most = std::max(most.ok() ? *most : 0, plan->workspace_bytes);
            else if (plan.status().code() != StatusCode::unsupported || !most.ok()) return plan.status();
        }
    return most;
}

Status check_workspace(const OperationPlan& plan, const void* workspace, int64_t bytes) {
    if (plan.workspace_bytes == 0) return {};
    if (!workspace || bytes < plan.workspace_bytes)
        return invalid_argument("the workspace has " + std::to_string(workspace ? bytes : 0) + " bytes; it must have " + std::to_string(plan.workspace_bytes));
    if (reinterpret_cast<uintptr_t>(workspace) % 16) return invalid_argument("the workspace is not aligned to 16 bytes");
    return {};
}

LookupResult Attention::lookup(const Problem& problem) const { return state_->database.lookup(problem, state_->device_number); }
const TuningDatabase& Attention::database() const { return state_->database; }
Status Attention::synchronize() { return state_->device->synchronize(); }
Result<void*> Attention::allocate(int64_t bytes) { return state_->device->allocate(bytes); }
Status Attention::free(void* address) { return state_->device->free(address); }
Status Attention::copy_to_device(void* to, const void* from, int64_t bytes) { return state_->device->copy_to_device(to, from, bytes); }
Status Attention::copy_to_host(void* to, const void* from, int64_t bytes) { return state_->device->copy_to_host(to, from, bytes); }

}  // namespace tilewright
