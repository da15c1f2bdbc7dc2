// Runs a kernel on a workload and compares it with the reference.
#include "verify/check.h"

#include <algorithm>
#include <cmath>

#include "verify/device_workload.h"

namespace tilewright {
namespace {

std::string describe(const RowIndex& row) {
    return "batch " + std::to_string(row.batch) + ", head " + std::to_string(row.head) + ", query " + std::to_string(row.query);
}

// The rows that were sampled, taken out of all rows.
std::vector<double> pick(const std::vector<double>& all, const Problem& p, const std::vector<RowIndex>& rows, size_t columns) {
    std::vector<double> picked;
    picked.reserve(rows.size() * columns);
    for (const RowIndex& row : rows) {
        size_t linear = size_t((row.batch * p.heads_q + row.head) * p.seq_q + row.query);
        picked.insert(picked.end(), all.begin() + std::ptrdiff_t(linear * columns), all.begin() + std::ptrdiff_t((linear + 1) * columns));
    }
    return picked;
}

void locate(Comparison& comparison, const std::vector<RowIndex>& rows, size_t columns) {
    if (comparison.passed) return;
    size_t worst = size_t(comparison.worst);
    comparison.failure += " (" + describe(rows[worst / columns]);
    if (columns > 1) comparison.failure += ", column " + std::to_string(worst % columns);
    comparison.failure += ")";
}

// Rows that were not compared must at least have been written: random data give finite results (lse: or an empty row).
std::string unwritten(const Answer& all, const Problem& p) {
    size_t columns = size_t(p.head_dim_v);
    auto row_of = [&](size_t linear) {
        int64_t i = int64_t(linear), heads = p.heads_q;
        return RowIndex{i / p.seq_q / heads, i / p.seq_q % heads, i % p.seq_q};
    };
    for (size_t i = 0; i < all.out.size(); ++i)
        if (!std::isfinite(all.out[i])) return "out is not finite or was never written (" + describe(row_of(i / columns)) + ", column " + std::to_string(i % columns) + ")";
    for (size_t i = 0; i < all.lse.size(); ++i)
        if (std::isnan(all.lse[i])) return "lse is NaN or was never written (" + describe(row_of(i)) + ")";
    return "";
}

}  // namespace

Result<PreparedCheck> prepare_check(const Problem& problem, const CheckOptions& options) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    if (problem.operation != Operation::forward) return invalid_argument("only the forward can be checked, not " + to_text(problem));
    PreparedCheck prepared{make_workload(problem, options.workload), {}, {}, {}, options};
    int64_t total = problem.batch * problem.heads_q * problem.seq_q;
    prepared.rows = sample_rows(problem, options.max_rows > 0 ? options.max_rows : total, options.workload.seed);
    AttentionInputs inputs = prepared.workload.inputs();
    prepared.reference = reference_forward(inputs, prepared.rows, options.threads);
    prepared.naive = naive_forward(inputs, prepared.rows, options.threads);
    return prepared;
}

CheckReport compare_outputs(const Workload& workload, const PreparedCheck& prepared) {
    const Problem& p = workload.problem;
    Answer all = workload.outputs();
    CheckReport report;
    report.rows = int64_t(prepared.rows.size());
    report.out = compare(pick(all.out, p, prepared.rows, size_t(p.head_dim_v)), prepared.reference.out, prepared.naive.out, "out");
    locate(report.out, prepared.rows, size_t(p.head_dim_v));
    if (workload.lse.present()) {
        report.lse = compare(pick(all.lse, p, prepared.rows, 1), prepared.reference.lse, prepared.naive.lse, "lse");
        locate(report.lse, prepared.rows, 1);
    }
    report.failure = !report.out.passed ? report.out.failure : report.lse.failure;
    if (report.failure.empty() && report.rows < p.batch * p.heads_q * p.seq_q) report.failure = unwritten(all, p);
    report.passed = report.failure.empty();
    return report;
}

Result<CheckReport> check(Device& device, Kernel& kernel, const PreparedCheck& prepared) {
    Workload workload = prepared.workload;
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload on_device, DeviceWorkload::upload(device, workload, prepared.options.kind));
    CheckReport report;
    std::vector<Buffer> first;
    for (int run = 0; run < std::max(1, prepared.options.runs); ++run) {
        if (run > 0) TILEWRIGHT_RETURN_IF_ERROR(on_device.reset_outputs(workload));
        TILEWRIGHT_RETURN_IF_ERROR(device.launch(kernel, on_device.parameters(), nullptr));
        TILEWRIGHT_RETURN_IF_ERROR(device.synchronize());
        TILEWRIGHT_ASSIGN_OR_RETURN(std::string stray, on_device.download(workload));
        if (!stray.empty()) {
            report.passed = false;
            report.failure = stray;
            return report;
        }
        if (run == 0) {
            report = compare_outputs(workload, prepared);
            if (!report.passed) return report;
            if (prepared.options.runs > 1) first = workload.buffers;
            continue;
        }
        for (size_t i = 0; i < first.size(); ++i)
            if (workload.buffers[i].bytes != first[i].bytes) {
                report.passed = false;
                report.failure = "run " + std::to_string(run + 1) + " of the same call differs from the first in its bits";
                return report;
            }
    }
    return report;
}

Result<CheckReport> check(Device& device, Kernel& kernel, const KernelSpec& spec, const CheckOptions& options) {
    CheckOptions suited = options;
    suited.kind = spec.kind;
    if (!spec.aligned) suited.workload.layout = Layout::unaligned;
    if (spec.rescaled && !suited.workload.scale) suited.workload.scale = float(-1 / std::sqrt(double(spec.problem.head_dim)));
    TILEWRIGHT_ASSIGN_OR_RETURN(PreparedCheck prepared, prepare_check(spec.problem, suited));
    return check(device, kernel, prepared);
}

}  // namespace tilewright
