// Runs the kernels of a backward and compares the gradients with the reference.
#include "verify/check_backward.h"

#include "verify/device_workload.h"
#include "verify/reference_backward.h"

namespace tilewright {

void forward_results(Workload& w) {
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

Result<BackwardReport> check_backward(Device& device, KernelSupply& supply, Workload& w, const Config& config, int runs) {
    return check_backward(device, supply, w, backward_plan(w.problem, config, device.info().arch, spec_for(w, {}).aligned), runs);
}

Result<BackwardReport> check_backward(Device& device, KernelSupply& supply, Workload& w, const std::vector<BackwardLaunch>& plan, int runs) {
    std::vector<Kernel*> kernels;
    for (const BackwardLaunch& launch : plan) {
        TILEWRIGHT_ASSIGN_OR_RETURN(Kernel * kernel, supply.kernel(spec_for(w, launch.config, launch.kind)));
        kernels.push_back(kernel);
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload on_device, DeviceWorkload::upload(device, w, plan.front().kind, plan.front().config));
    BackwardReport report;
    std::vector<Buffer> first;
    for (int run = 0; run < runs; ++run) {
        TILEWRIGHT_RETURN_IF_ERROR(on_device.reset_outputs(w));
        for (Kernel* kernel : kernels) TILEWRIGHT_RETURN_IF_ERROR(device.launch(*kernel, on_device.backward_parameters(), nullptr));
        TILEWRIGHT_RETURN_IF_ERROR(device.synchronize());
        TILEWRIGHT_ASSIGN_OR_RETURN(report.failure, on_device.download(w));
        if (!report.failure.empty()) return report;
        if (run == 0) first = w.buffers;
        for (size_t i = 0; i < first.size() && report.failure.empty(); ++i)
            if (w.buffers[i].bytes != first[i].bytes) report.failure = "run " + std::to_string(run + 1) + " of the same call differs from the first in its bits";
        if (!report.failure.empty()) return report;
    }
    return compare_gradients(w);
}

BackwardReport compare_gradients(const Workload& w) {
    BackwardReport report;
    OutputGradients given{w.view(w.out_gradient), w.view(w.lse_gradient)};
    Gradients reference = reference_backward(w.inputs(), given), naive = naive_backward(w.inputs(), given);
    report.query = compare(w.elements(w.query_gradient), reference.query, naive.query, "query_gradient", reference.largest_term);
    report.key = compare(w.elements(w.key_gradient), reference.key, naive.key, "key_gradient", reference.largest_term);
    report.value = compare(w.elements(w.value_gradient), reference.value, naive.value, "value_gradient");
    report.sink = compare(w.elements(w.sink_gradient), reference.sink, naive.sink, "sink_gradient");
    for (const Comparison* comparison : {&report.query, &report.key, &report.value, &report.sink})
        if (report.failure.empty()) report.failure = comparison->failure;
    report.passed = report.failure.empty();
    return report;
}

}  // namespace tilewright
