// Runs an operation on a workload and compares it with the reference.
#include "verify/check.h"

#include <algorithm>
#include <cmath>

#include "verify/element.h"
#include "verify/parallel.h"

namespace tilewright {
namespace {

std::string describe(const RowIndex& row, const Tensor& tensor, size_t column) {
    std::string text = " (batch " + std::to_string(row.batch) + ", head " + std::to_string(row.head) + ", row " + std::to_string(row.query);
    if (tensor.sizes[3] > 1) text += ", column " + std::to_string(column);
    return text + ")";
}

// The elements of the rows that were sampled.
std::vector<double> pick(const Workload& workload, const ExpectedRows& expected) {
    const Tensor& tensor = workload.*expected.tensor;
    const TensorView view = workload.view(tensor);
    std::vector<double> picked;
    picked.reserve(expected.rows.size() * size_t(tensor.sizes[3]));
    for (const RowIndex& row : expected.rows)
        for (int64_t c = 0; c < tensor.sizes[3]; ++c) picked.push_back(view.at(row.batch, row.head, row.query, c));
    return picked;
}

// Rows that were not compared must at least have been written: random data give finite results (lse: or an empty row).
std::string unwritten(const Workload& workload, const ExpectedRows& expected) {
    const Tensor& tensor = workload.*expected.tensor;
    const TensorView view = workload.view(tensor);
    const bool log_sums = expected.tensor == &Workload::lse;
    const auto [batch, heads, rows, columns] = tensor.sizes;
    std::vector<int64_t> first(size_t(batch * heads), rows * columns);  // of each head, the element that is wrong
    parallel_for(batch * heads, 0, [&, heads = heads, rows = rows, columns = columns](int64_t i) {
        std::vector<float> row(static_cast<size_t>(columns));
        for (int64_t r = 0; r < rows; ++r) {
            load_elements(view.dtype, view.address(i / heads, i % heads, r, 0), view.strides[3], columns, row.data());
            const auto wrong = std::ranges::find_if(row, [&](float x) { return !std::isfinite(x) && !(log_sums && x < 0); });
            if (wrong == row.end()) continue;
            first[size_t(i)] = r * columns + (wrong - row.begin());
            return;
        }
    });
    const auto head = std::ranges::find_if(first, [&](int64_t element) { return element < rows * columns; });
    if (head == first.end()) return "";
    const int64_t i = head - first.begin();
    return std::string(expected.name) + " is " + (log_sums ? "NaN" : "not finite") + " or was never written" +
           describe({i / heads, i % heads, *head / columns}, tensor, size_t(*head % columns));
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
        Comparison comparison = compare(pick(workload, e), e.reference, e.naive, e.name, e.terms);
        if (!comparison.passed) {
            auto worst = static_cast<size_t>(comparison.worst), columns = static_cast<size_t>(tensor.sizes[3]);
            comparison.failure += describe(e.rows[worst / columns], tensor, worst % columns);
        }
        if (report.failure.empty()) report.failure = comparison.failure;
        if (report.failure.empty() && int64_t(e.rows.size()) < tensor.sizes[0] * tensor.sizes[1] * tensor.sizes[2]) report.failure = unwritten(workload, e);
        report.rows += int64_t(e.rows.size());
        report.tensors.push_back({e.name, std::move(comparison)});
    }
    report.passed = report.failure.empty();
    return report;
}

Result<CheckReport> check(Device& device, const ReadyOperation& operation, DeviceWorkload& on_device, PreparedCheck& prepared) {
    Workload& workload = prepared.workload;
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload::Bound bound, on_device.bind(operation.plan));
    CheckReport report;
    std::vector<Buffer> first;
    const int runs = std::max(1, prepared.options.runs);
    for (int run = 0; run < runs; ++run) {
        TILEWRIGHT_RETURN_IF_ERROR(on_device.reset_outputs(workload));
        TILEWRIGHT_RETURN_IF_ERROR(launch(device, operation.kernels, bound.parameters, nullptr));
        TILEWRIGHT_RETURN_IF_ERROR(device.synchronize());
        TILEWRIGHT_ASSIGN_OR_RETURN(report.failure, on_device.download(workload));
        if (!report.failure.empty()) {
            TILEWRIGHT_RETURN_IF_ERROR(on_device.restore(workload));
            break;
        }
        if (run == 0) {
            report = compare_outputs(workload, prepared.expected);
            if (runs > 1) first = workload.buffers;
        }
        for (size_t i = 0; run > 0 && i < first.size(); ++i)
            if (workload.buffers[i].bytes != first[i].bytes) report.failure = "run " + std::to_string(run + 1) + " of the same call differs from the first in its bits";
        if (!report.failure.empty()) break;
    }
    report.passed = report.failure.empty();
    return report;
}

Result<CheckReport> check(Device& device, const ReadyOperation& operation, PreparedCheck& prepared) {
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload on_device, DeviceWorkload::upload(device, prepared.workload));
    return check(device, operation, on_device, prepared);
}

}  // namespace tilewright
