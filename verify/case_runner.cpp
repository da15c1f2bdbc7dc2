// What cases are written with.
#include "verify/case_runner.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <memory>

#include "verify/check_backward.h"
#include "verify/device_workload.h"
#include "verify/element.h"

namespace tilewright {
namespace {

std::string describe(const RowIndex& row) {
    return "batch " + std::to_string(row.batch) + ", head " + std::to_string(row.head) + ", query " + std::to_string(row.query);
}

std::string text_of(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", number);
    return text;
}

Status differs(const char* tensor, const RowIndex& row, double is, double should) {
    return wrong(std::string(tensor) + " is " + text_of(is) + ", by hand it is " + text_of(should) + " (" + describe(row) + ")");
}

bool near(double x, double y, double tolerance) { return x == y || std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y)); }
bool same(double x, double y) { return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) || (std::isnan(x) && std::isnan(y)); }

void keep_rows(Tensor& tensor, size_t dimension, int64_t first, int64_t count) {
    if (!tensor.present()) return;
    tensor.offset += first * tensor.strides[dimension] * int64_t(size_of(tensor.dtype));
    tensor.sizes[dimension] = count;
}

}  // namespace

Status wrong(std::string sentence) { return {StatusCode::internal, std::move(sentence)}; }

Status at(const std::string& where, Status status) {
    if (status.ok() || status.code() == StatusCode::unsupported) return status;
    return {status.code(), where + ": " + status.message()};
}

Problem CaseRunner::problem(std::string_view parts) const {
    Result<Problem> problem = parse_problem(name(operation_) + (":" + std::string(parts)) + "," + name(dtype_));
    return problem.ok() ? *problem : Problem{};  // the texts are constants, and a test parses them all
}

Workload CaseRunner::random(std::string_view parts, const WorkloadOptions& options) const {
    WorkloadOptions seeded = options;
    seeded.seed = seed_;
    if (operation_ == Operation::backward) return make_backward_workload(problem(parts), seeded);
    return make_workload(problem(parts), seeded);
}

Workload CaseRunner::counting(std::string_view parts, double first) const {
    WorkloadOptions options;
    options.scale = 1;
    Workload w = random(parts, options);
    w.fill(w.query, 0);
    auto [batch, heads, rows, columns] = w.value.sizes;
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < heads; ++h)
            for (int64_t j = 0; j < rows; ++j)
                for (int64_t c = 0; c < columns; ++c) w.set(w.value, b, h, j, c, first + double(j));
    return w;
}

Result<ReadyOperation> CaseRunner::operation_for(const Workload& workload) const {
    CallTraits traits = traits_of(workload);
    traits.materialized = materialized_;
    return supply(supply_, device_.info().arch, workload.problem, config_, traits);
}

Status CaseRunner::run(Workload& workload, int times) const {
    TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation operation, operation_for(workload));
    workload.blank_outputs();
    std::lock_guard lock(launches_);
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload on_device, DeviceWorkload::upload(device_, workload));
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload::Bound bound, on_device.bind(operation.plan));
    std::vector<Buffer> first;
    for (int i = 1; i <= times; ++i) {
        if (i > 1) TILEWRIGHT_RETURN_IF_ERROR(on_device.reset_outputs(workload));
        TILEWRIGHT_RETURN_IF_ERROR(launch(device_, operation.kernels, bound.parameters, nullptr));
        TILEWRIGHT_RETURN_IF_ERROR(device_.synchronize());
        TILEWRIGHT_ASSIGN_OR_RETURN(std::string stray, on_device.download(workload));
        if (!stray.empty()) return wrong(stray);
        if (i == 1) first = workload.buffers;
        for (size_t n = 0; n < first.size(); ++n)
            if (workload.buffers[n].bytes != first[n].bytes) return wrong("run " + std::to_string(i) + " of the same call differs from the first in its bits");
    }
    return {};
}

Status CaseRunner::run_far_apart(Workload& w, int64_t apart) const {
    TILEWRIGHT_ASSIGN_OR_RETURN(ReadyOperation operation, operation_for(w));
    std::lock_guard lock(launches_);
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload on_device, DeviceWorkload::upload(device_, w));
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload::Bound bound, on_device.bind(operation.plan));
    OperationParameters moved = bound.parameters;
    kernel::ForwardParameters& parameters = forward_part(moved);
    auto release = [this](void* address) { (void)device_.free(address).ok(); };
    std::vector<std::unique_ptr<void, decltype(release)>> memory;
    auto batch_bytes = [](const Tensor& tensor) { return tensor.strides[0] * int64_t(size_of(tensor.dtype)); };
    auto spread_out = [&](const Tensor& tensor, kernel::Strides& strides) -> Result<void*> {
        int64_t bytes = (tensor.sizes[0] - 1) * apart * int64_t(size_of(tensor.dtype)) + batch_bytes(tensor);
        Result<void*> base = device_.allocate(bytes);
        if (!base.ok()) return Status(StatusCode::unsupported, base.status().message());
        memory.emplace_back(*base, release);
        strides.batch = apart;
        for (int64_t b = 0; b < tensor.sizes[0]; ++b)
            TILEWRIGHT_RETURN_IF_ERROR(device_.copy_to_device(static_cast<char*>(*base) + b * apart * int64_t(size_of(tensor.dtype)),
                                                              w.view(tensor).address(b, 0, 0, 0), batch_bytes(tensor)));
        return *base;
    };
    TILEWRIGHT_ASSIGN_OR_RETURN(parameters.key, spread_out(w.key, parameters.key_strides));
    TILEWRIGHT_ASSIGN_OR_RETURN(parameters.value, spread_out(w.value, parameters.value_strides));
    TILEWRIGHT_ASSIGN_OR_RETURN(parameters.out, spread_out(w.out, parameters.out_strides));
    TILEWRIGHT_RETURN_IF_ERROR(launch(device_, operation.kernels, moved, nullptr));
    TILEWRIGHT_RETURN_IF_ERROR(device_.synchronize());
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string stray, on_device.download(w));  // brings the lse
    if (!stray.empty()) return wrong(stray);
    for (int64_t b = 0; b < w.out.sizes[0]; ++b)
        TILEWRIGHT_RETURN_IF_ERROR(device_.copy_to_host(w.buffers[size_t(w.out.buffer)].bytes.data() + w.out.offset + b * batch_bytes(w.out),
                                                        static_cast<char*>(parameters.out) + b * apart * int64_t(size_of(w.out.dtype)), batch_bytes(w.out)));
    return {};
}

Status CaseRunner::matches_reference(const Workload& workload, int64_t rows) const {
    CheckOptions options;
    options.workload.seed = seed_, options.max_rows = rows, options.threads = 1;
    CheckReport report = compare_outputs(workload, expected_rows(workload, options));
    return report.passed ? Status() : at(to_text(workload.problem), wrong(report.failure));
}

Status CaseRunner::check(Workload& workload, int64_t rows) const {
    TILEWRIGHT_RETURN_IF_ERROR(at(to_text(workload.problem), run(workload)));
    return matches_reference(workload, rows);
}

Status CaseRunner::by_hand(Workload& w, const std::vector<double>& out, const std::vector<double>& lse, bool exact) const {
    TILEWRIGHT_RETURN_IF_ERROR(check(w));
    std::vector<RowIndex> rows = all_rows(w.problem);
    Answer reference = reference_forward(w.inputs(), rows, 1), result = w.outputs();
    for (size_t r = 0; r < rows.size(); ++r) {
        size_t query = size_t(rows[r].query), columns = size_t(w.problem.head_dim_v);
        for (size_t c = r * columns; c < (r + 1) * columns; ++c) {
            if (!near(reference.out[c], out[query], 1e-6)) return differs("the reference's out", rows[r], reference.out[c], out[query]);
            double rounded = round_to(dtype_, out[query]), last_place = out[query] == rounded ? 0 : epsilon(dtype_) * std::abs(rounded);
            if (exact && !(std::abs(result.out[c] - rounded) <= last_place)) return differs("out", rows[r], result.out[c], out[query]);
        }
        if (lse.empty()) continue;
        if (!near(reference.lse[r], lse[query], 1e-6)) return differs("the reference's lse", rows[r], reference.lse[r], lse[query]);
        if (!near(result.lse[r], lse[query], 1e-6)) return differs("lse", rows[r], result.lse[r], lse[query]);
    }
    return {};
}

Status check_layouts(const CaseRunner& run, std::string_view parts, const std::function<bool(Layout)>& repeats) {
    Workload first = run.random(parts);
    TILEWRIGHT_RETURN_IF_ERROR(run.check(first));
    for (Layout layout : all_layouts) {
        WorkloadOptions options;
        options.layout = layout;
        Workload other = run.random(parts, options);
        Status status = run.run(other);
        if (status.code() == StatusCode::unsupported && !repeats(layout)) continue;
        TILEWRIGHT_RETURN_IF_ERROR(at(name(layout), status));
        if (repeats(layout)) TILEWRIGHT_RETURN_IF_ERROR(at(std::string(name(layout)) + " and rows_first", same_bits(first, other)));
        else TILEWRIGHT_RETURN_IF_ERROR(at(name(layout), run.matches_reference(other)));
    }
    return {};
}

Status same_bits(const Workload& a, const Workload& b, const RowFilter& included) {
    std::vector<const Tensor*> in_a = a.written(), in_b = b.written();
    for (size_t n = 0; n < std::min(in_a.size(), in_b.size()); ++n) {  // an lse need not be there in both
        std::vector<double> x = a.elements(*in_a[n]), y = b.elements(*in_b[n]);
        if (x.size() != y.size()) return wrong("two results differ in size");
        auto [batch, heads, rows, columns] = in_a[n]->sizes;
        for (size_t i = 0; i < x.size(); ++i) {
            int64_t row = int64_t(i) / columns;
            RowIndex index{row / rows / heads, row / rows % heads, row % rows};
            if (same(x[i], y[i]) || (included && !included(index))) continue;
            return wrong(std::string(name_of(a, *in_a[n])) + " should be equal bit by bit, but is " + text_of(x[i]) + " and " + text_of(y[i]) + " (" + describe(index) + ")");
        }
    }
    return {};
}

void keep_keys(Workload& w, int64_t first, int64_t count) {
    keep_rows(w.key, 2, first, count);
    keep_rows(w.value, 2, first, count);
    keep_rows(w.bias, 3, first, count);
    w.problem.seq_kv = count;
}

void keep_queries(Workload& w, int64_t first, int64_t count) {
    for (Tensor* tensor : {&w.query, &w.out, &w.bias}) keep_rows(*tensor, 2, first, count);
    w.problem.seq_q = count;
    w.lse.sizes[2] = count;  // a contiguous tensor of its own: its strides follow the size
    w.lse.strides = {w.problem.heads_q * count, count, 1, 1};
}

void keep_head(Workload& w, int64_t head) {
    for (Tensor* tensor : {&w.query, &w.out, &w.bias, &w.lse, &w.slope, &w.sink}) keep_rows(*tensor, 1, head, 1);
    for (Tensor* tensor : {&w.key, &w.value}) keep_rows(*tensor, 1, head / (w.problem.heads_q / w.problem.heads_kv), 1);
    w.problem.heads_q = w.problem.heads_kv = 1;
}

}  // namespace tilewright
