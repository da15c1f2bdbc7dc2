// Runs an operation on a workload and compares it with the reference.
#include "verify/check.h"

#include <algorithm>
#include <cmath>

#include "verify/device_workload.h"

namespace tilewright {
namespace {

std::string describe(const RowIndex& row, const Tensor& tensor, size_t column) {
    std::string text = " (batch " + std::to_string(row.batch) + ", head " + std::to_string(row.head) + ", row " + std::to_string(row.query);
    if (tensor.sizes[3] > 1) text += ", column " + std::to_string(column);
    return text + ")";
}

// The rows that were sampled, taken out of all elements.
std::vector<double> pick(const std::vector<double>& all, const Tensor& tensor, const std::vector<RowIndex>& rows) {
    auto columns = static_cast<size_t>(tensor.sizes[3]);
    std::vector<double> picked;
    picked.reserve(rows.size() * columns);
    for (const RowIndex& row : rows) {
        auto linear = static_cast<size_t>((row.batch * tensor.sizes[1] + row.head) * tensor.sizes[2] + row.query);
        picked.insert(picked.end(), all.begin() + std::ptrdiff_t(linear * columns), all.begin() + std::ptrdiff_t((linear + 1) * columns));
    }
    return picked;
}

// Rows that were not compared must at least have been written: random data give finite results (lse: or an empty row).
std::string unwritten(const ExpectedRows& expected, const Tensor& tensor, const std::vector<double>& all) {
    bool log_sums = expected.tensor == &Workload::lse;
    size_t columns = size_t(tensor.sizes[3]);
    for (size_t i = 0; i < all.size(); ++i) {
        if (std::isfinite(all[i]) || (log_sums && all[i] < 0)) continue;
        int64_t row = int64_t(i / columns), head = row / tensor.sizes[2];
        return std::string(expected.name) + " is " + (log_sums ? "NaN" : "not finite") + " or was never written" +
               describe({head / tensor.sizes[1], head % tensor.sizes[1], row % tensor.sizes[2]}, tensor, i % columns);
    }
    return "";
}

}  // namespace

double CheckReport::relative_error() const {
    double most = 0;
    for (const Of& of : tensors) most = std::max(most, of.comparison.relative_error);
    return most;
}

CheckReport compare_outputs(const Workload& workload, const std::vector<ExpectedRows>& expected) {
    CheckReport report;
    for (const ExpectedRows& e : expected) {
        const Tensor& tensor = workload.*e.tensor;
        std::vector<double> all = workload.elements(tensor);
        Comparison comparison = compare(pick(all, tensor, e.rows), e.reference, e.naive, e.name, e.terms);
        if (!comparison.passed) {
            auto worst = static_cast<size_t>(comparison.worst), columns = static_cast<size_t>(tensor.sizes[3]);
            comparison.failure += describe(e.rows[worst / columns], tensor, worst % columns);
        }
        if (report.failure.empty()) report.failure = comparison.failure;
        if (report.failure.empty() && int64_t(e.rows.size()) < tensor.sizes[0] * tensor.sizes[1] * tensor.sizes[2]) report.failure = unwritten(e, tensor, all);
        report.rows += int64_t(e.rows.size());
        report.tensors.push_back({e.name, std::move(comparison)});
    }
    report.passed = report.failure.empty();
    return report;
}

Result<CheckReport> check(Device& device, const ReadyOperation& operation, const PreparedCheck& prepared, Workload* results) {
    Workload workload = prepared.workload;
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload on_device, DeviceWorkload::upload(device, workload));
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload::Bound bound, on_device.bind(operation.plan));
    CheckReport report;
    std::vector<Buffer> first;
    for (int run = 0; run < std::max(1, prepared.options.runs); ++run) {
        TILEWRIGHT_RETURN_IF_ERROR(on_device.reset_outputs(workload));
        TILEWRIGHT_RETURN_IF_ERROR(launch(device, operation.kernels, bound.parameters, nullptr));
        TILEWRIGHT_RETURN_IF_ERROR(device.synchronize());
        TILEWRIGHT_ASSIGN_OR_RETURN(report.failure, on_device.download(workload));
        if (!report.failure.empty()) break;
        if (run == 0) first = workload.buffers, report = compare_outputs(workload, prepared.expected);
        for (size_t i = 0; i < first.size() && report.passed; ++i)
            if (workload.buffers[i].bytes != first[i].bytes) report.failure = "run " + std::to_string(run + 1) + " of the same call differs from the first in its bits";
        if (!report.failure.empty()) break;
    }
    report.passed = report.failure.empty();
    if (results) *results = std::move(workload);
    return report;
}

}  // namespace tilewright
