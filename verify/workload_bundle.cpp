// Records a launch of a workload and adds what must come out.
#include "verify/workload_bundle.h"

#include <algorithm>
#include <cmath>

#include "backends/bundle_recorder.h"
#include "verify/device_workload.h"
#include "verify/element.h"

namespace tilewright {
namespace {

// As compare() does.
double tolerance_of(const ExpectedRows& rows) {
    double largest = rows.terms, error = 0;
    for (size_t i = 0; i < rows.reference.size(); ++i) {
        if (!std::isfinite(rows.reference[i])) continue;
        largest = std::max(largest, std::abs(rows.reference[i]));
        if (std::isfinite(rows.naive[i])) error = std::max(error, std::abs(rows.naive[i] - rows.reference[i]));
    }
    return 2 * error + 1e-6 * largest;
}

// Where an output of the workload lies on the device.
const void* address_of(const OperationParameters& parameters, Tensor Workload::*tensor) {
    if (tensor == &Workload::out) return forward_part(parameters).out;
    if (tensor == &Workload::lse) return forward_part(parameters).lse;
    const auto& backward = std::get<kernel::BackwardParameters>(parameters);
    if (tensor == &Workload::query_gradient) return backward.query_gradient;
    if (tensor == &Workload::key_gradient) return backward.key_gradient;
    return tensor == &Workload::value_gradient ? backward.value_gradient : backward.sink_gradient;
}

}  // namespace

Result<Bundle> make_bundle(Backend& backend, const Arch& arch, const PreparedCheck& prepared, const OperationPlan& plan, std::span<const BuiltKernel> kernels) {
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string toolchain, backend.toolchain());
    BundleRecorder recorder(backend, arch, toolchain);
    const Workload& workload = prepared.workload;
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload on_device, DeviceWorkload::upload(recorder, workload));
    std::vector<std::unique_ptr<Kernel>> loaded;
    std::vector<Kernel*> in_order;
    for (size_t i = 0; i < plan.kernels.size(); ++i) {
        TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, recorder.load(kernels[i].object, plan.kernels[i], kernels[i].source));
        loaded.push_back(std::move(kernel)), in_order.push_back(loaded.back().get());
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceWorkload::Bound bound, on_device.bind(plan));
    TILEWRIGHT_RETURN_IF_ERROR(launch(recorder, in_order, bound.parameters, nullptr));
    if (!recorder.bundle()) return invalid_argument("the problem has nothing to launch: " + to_text(workload.problem));
    Bundle bundle = *recorder.bundle();
    bundle.problem = to_text(workload.problem);

    for (const ExpectedRows& rows : prepared.expected) {
        const Tensor& tensor = workload.*rows.tensor;
        TILEWRIGHT_ASSIGN_OR_RETURN(auto place, recorder.place(address_of(bound.parameters, rows.tensor)));
        BundleExpected expected;
        expected.name = rows.name, expected.buffer = place.first, expected.offset = place.second;
        expected.element = tilewright::name(tensor.dtype);
        expected.strides = {tensor.strides[0], tensor.strides[1], tensor.strides[2]};
        expected.columns = tensor.sizes[3];
        for (const RowIndex& row : rows.rows) expected.rows.push_back({row.batch, row.head, row.query});
        expected.values = rows.reference;
        expected.tolerance = tolerance_of(rows);
        bundle.expected.push_back(std::move(expected));
    }
    return bundle;
}

std::string check_bundle(const Bundle& bundle, const std::vector<std::string>& results) {
    if (results.size() != bundle.buffers.size())
        return "there are " + std::to_string(results.size()) + " buffers, not " + std::to_string(bundle.buffers.size());
    for (size_t i = 0; i < results.size(); ++i) {
        const BundleBuffer& buffer = bundle.buffers[i];
        if (results[i].size() != buffer.contents.size()) return buffer.name + " has another size";
        if (!buffer.written && results[i] != buffer.contents) return buffer.name + " was written, but is an input";
    }
    for (const BundleExpected& expected : bundle.expected) {
        auto buffer = std::ranges::find(bundle.buffers, expected.buffer, &BundleBuffer::name);
        const std::string& bytes = results[static_cast<size_t>(buffer - bundle.buffers.begin())];
        Result<DType> dtype = parse_dtype(expected.element);
        if (!dtype.ok()) return dtype.status().message();
        auto element = static_cast<int64_t>(size_of(*dtype)), columns = expected.columns;
        for (size_t i = 0; i < expected.values.size(); ++i) {
            const auto& row = expected.rows[i / static_cast<size_t>(columns)];
            int64_t column = static_cast<int64_t>(i) % columns;
            int64_t at = row[0] * expected.strides[0] + row[1] * expected.strides[1] + row[2] * expected.strides[2] + column;
            double x = load_element(*dtype, bytes.data() + expected.offset + at * element), r = expected.values[i];
            bool same = std::isnan(r) ? std::isnan(x) : std::isinf(r) ? x == r : std::abs(x - r) <= expected.tolerance;
            if (!same)
                return expected.name + " of batch " + std::to_string(row[0]) + ", head " + std::to_string(row[1]) + ", row " + std::to_string(row[2]) +
                       ", column " + std::to_string(column) + " is " + std::to_string(x) + "; expected " + std::to_string(r) + " within " +
                       std::to_string(expected.tolerance);
        }
    }
    return "";
}

}  // namespace tilewright
