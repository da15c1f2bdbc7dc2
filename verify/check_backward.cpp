// Forward results for a backward, by the reference or by the device.
#include "verify/check_backward.h"

#include "verify/device_workload.h"
#include "verify/sequences.h"

namespace tilewright {
namespace {

// Multiplications of a forward above which the reference is too slow.
constexpr double most_products = 3e9;

// The device's forward on the workload's data: checked on sampled rows, then taken over.
Status results_of_device(Device& device, const ForwardKernels& forward, Workload& w, const CheckOptions& options) {
    Workload f = w;
    f.problem.operation = Operation::forward;
    for (const Tensor* tensor : {&f.out, &f.lse}) f.buffers[size_t(tensor->buffer)].output = true;
    f.blank_outputs();
    TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation ready, forward(f.problem, traits_of(f)));
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload on_device, DeviceWorkload::upload(device, f));
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload::Bound bound, on_device.bind(ready.plan));
    TILEWRIGHT_RETURN_IF_ERROR(launch(device, ready.kernels, bound.parameters, nullptr));
    TILEWRIGHT_RETURN_IF_ERROR(device.synchronize());
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string stray, on_device.download(f));
    CheckReport report = compare_outputs(f, expected_rows(f, options));
    if (!stray.empty() || !report.passed) return {StatusCode::internal, "the forward that the backward needs is wrong: " + (stray.empty() ? report.failure : stray)};
    for (const Tensor* tensor : {&w.out, &w.lse}) w.buffers[size_t(tensor->buffer)].bytes = f.buffers[size_t(tensor->buffer)].bytes;
    return {};
}

}  // namespace

void forward_results(Workload& w) {
    if (w.problem.packed) return for_each_sequence(w, [](Workload& one, int64_t) { forward_results(one); });
    std::vector<RowIndex> rows = all_rows(w.problem);
    Answer answer = reference_forward(w.inputs(), rows);
    for (size_t n = 0; n < rows.size(); ++n) {
        auto [b, h, i] = rows[n];
        w.set(w.lse, b, h, i, 0, answer.lse[n]);
        for (int64_t d = 0; d < w.problem.head_dim_v; ++d) w.set(w.out, b, h, i, d, answer.out[n * size_t(w.problem.head_dim_v) + size_t(d)]);
    }
}

Workload make_backward_workload(const Problem& problem, const WorkloadOptions& options) {
    Workload w = make_workload(problem, options);
    forward_results(w);
    return w;
}

Result<PreparedCheck> prepare_check(Device& device, const ForwardKernels& forward, const Problem& problem, const CheckOptions& options) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    double products = double(problem.batch * problem.heads_q) * double(visible_pairs(problem)) * double(problem.head_dim + problem.head_dim_v);
    if (problem.operation != Operation::backward || products <= most_products) return prepare_check(problem, options);
    PreparedCheck prepared{make_workload(problem, options.workload), {}, options};
    TILEWRIGHT_RETURN_IF_ERROR(results_of_device(device, forward, prepared.workload, options));
    prepared.expected = expected_rows(prepared.workload, options);
    return prepared;
}

Result<PreparedCheck> prepare_check(const Problem& problem, const CheckOptions& options) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    PreparedCheck prepared{problem.operation == Operation::backward ? make_backward_workload(problem, options.workload) : make_workload(problem, options.workload), {}, options};
    prepared.expected = expected_rows(prepared.workload, options);
    return prepared;
}

Result<CheckReport> check_backward(Device& device, KernelSupply& from, Workload& w, const Config& config, int runs) {
    return check_backward(device, from, w, backward_plan(w.problem, config, device.info().arch, traits_of(w).aligned), runs);
}

Result<CheckReport> check_backward(Device& device, KernelSupply& from, Workload& w, const std::vector<BackwardLaunch>& plan, int runs) {
    TILEWRIGHT_ASSIGN_OR_RETURN(OperationPlan whole, plan_operation(w.problem, plan.front().config, device.info().arch, traits_of(w)));
    ReadyOperation ready{std::move(whole), {}};
    for (const BackwardLaunch& launch : plan) {
        TILEWRIGHT_ASSIGN_OR_RETURN(Kernel * kernel, from.kernel({launch.kind, w.problem, launch.config, traits_of(w).aligned}));
        ready.kernels.push_back(kernel);
    }
    CheckOptions options;
    options.runs = runs;
    std::vector<ExpectedRows> expected = expected_rows(w, options);
    PreparedCheck prepared{std::move(w), std::move(expected), options};
    Result<CheckReport> report = check(device, ready, prepared);
    w = std::move(prepared.workload);
    return report;
}

CheckReport compare_gradients(const Workload& workload) { return compare_outputs(workload, expected_rows(workload, {})); }

}  // namespace tilewright
