// A workload on a device.
#include "verify/device_workload.h"

#include <algorithm>
#include <cstring>

#include "backends/backward_plan.h"
#include "backends/launch.h"

namespace tilewright {
namespace {

kernel::Strides strides_of(const Tensor& tensor) { return {tensor.strides[0], tensor.strides[1], tensor.strides[2]}; }

// Copies the elements of `tensor` from one image of its buffer to another.
void copy_elements(const Tensor& tensor, const std::vector<unsigned char>& from, std::vector<unsigned char>& to) {
    int64_t element = int64_t(size_of(tensor.dtype));
    auto [batch, heads, rows, columns] = tensor.sizes;
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < heads; ++h)
            for (int64_t r = 0; r < rows; ++r) {
                int64_t at = tensor.offset + (b * tensor.strides[0] + h * tensor.strides[1] + r * tensor.strides[2]) * element;
                std::memcpy(to.data() + at, from.data() + at, size_t(columns * element));
            }
}

const char* buffer_name(const Workload& w, int buffer) {
    if (buffer == w.out.buffer) return "out";
    if (buffer == w.lse.buffer) return "lse";
    if (buffer == w.query.buffer) return "query";
    if (buffer == w.key.buffer) return "key";
    if (buffer == w.value.buffer) return "value";
    if (buffer == w.bias.buffer) return "bias";
    if (buffer == w.out_gradient.buffer) return "out_gradient";
    if (buffer == w.lse_gradient.buffer) return "lse_gradient";
    if (buffer == w.query_gradient.buffer) return "query_gradient";
    if (buffer == w.key_gradient.buffer) return "key_gradient";
    if (buffer == w.value_gradient.buffer) return "value_gradient";
    if (buffer == w.sink_gradient.buffer) return "sink_gradient";
    return buffer == w.slope.buffer ? "slope" : "sink";
}

bool aligned(const Tensor& tensor) {
    int64_t element = int64_t(size_of(tensor.dtype)), any = tensor.offset;
    for (size_t i = 0; i < 3; ++i) any |= tensor.strides[i] * element;
    return any >= 0 && any % 16 == 0 && tensor.sizes[3] % 8 == 0;  // negative if any stride is
}

}  // namespace

Result<DeviceWorkload> DeviceWorkload::upload(Device& device, const Workload& w, KernelKind kind, const Config& config) {
    DeviceWorkload on(device);
    for (const Buffer& buffer : w.buffers) {
        int64_t bytes = int64_t(buffer.bytes.size());
        TILEWRIGHT_ASSIGN_OR_RETURN(void* address, device.allocate(bytes));
        on.buffers_.emplace_back(address, Free{&device});
        TILEWRIGHT_RETURN_IF_ERROR(device.copy_to_device(address, buffer.bytes.data(), bytes));
    }
    auto address = [&](const Tensor& tensor) -> void* {
        return tensor.present() ? static_cast<unsigned char*>(on.buffers_[size_t(tensor.buffer)].get()) + tensor.offset : nullptr;
    };
    kernel::ForwardParameters& p = on.parameters_;
    p = sized_parameters(w.problem, w.scale, w.softcap);
    p.query = address(w.query), p.key = address(w.key), p.value = address(w.value), p.bias = address(w.bias);
    p.out = address(w.out), p.lse = static_cast<float*>(address(w.lse));
    p.slope = static_cast<const float*>(address(w.slope)), p.sink = static_cast<const float*>(address(w.sink));
    p.query_strides = strides_of(w.query), p.key_strides = strides_of(w.key), p.value_strides = strides_of(w.value);
    p.out_strides = strides_of(w.out), p.bias_strides = strides_of(w.bias), p.bias_column_stride = w.bias.strides[3];
    if (kind == KernelKind::attention_materialized) {
        const Problem& problem = w.problem;
        TILEWRIGHT_ASSIGN_OR_RETURN(void* scores, device.allocate(problem.batch * problem.heads_q * problem.seq_q * problem.seq_kv * int64_t(sizeof(float))));
        on.buffers_.emplace_back(scores, Free{&device});
        p.scores = static_cast<float*>(scores);
    }
    if (w.problem.operation != Operation::backward) return on;
    kernel::BackwardParameters& g = on.backward_;
    BackwardWorkspace workspace = backward_workspace(w.problem, config);
    TILEWRIGHT_ASSIGN_OR_RETURN(void* memory, device.allocate(workspace.bytes()));
    on.buffers_.emplace_back(memory, Free{&device});
    TILEWRIGHT_RETURN_IF_ERROR(device.fill(memory, 0xff, workspace.bytes()));
    g.forward = p;
    g.out_gradient = address(w.out_gradient), g.lse_gradient = static_cast<const float*>(address(w.lse_gradient));
    g.query_gradient = address(w.query_gradient), g.key_gradient = address(w.key_gradient), g.value_gradient = address(w.value_gradient);
    g.sink_gradient = static_cast<float*>(address(w.sink_gradient));
    g.out_gradient_strides = strides_of(w.out_gradient), g.query_gradient_strides = strides_of(w.query_gradient);
    g.key_gradient_strides = strides_of(w.key_gradient), g.value_gradient_strides = strides_of(w.value_gradient);
    use_workspace(w.problem, workspace, memory, g);
    return on;
}

Status DeviceWorkload::reset_outputs(Workload& w) {
    w.blank_outputs();
    for (size_t i = 0; i < w.buffers.size(); ++i)
        if (const Buffer& buffer = w.buffers[i]; buffer.output)
            TILEWRIGHT_RETURN_IF_ERROR(device_->copy_to_device(buffers_[i].get(), buffer.bytes.data(), int64_t(buffer.bytes.size())));
    return {};
}

Result<std::string> DeviceWorkload::download(Workload& w) const {
    for (size_t i = 0; i < w.buffers.size(); ++i) {
        std::vector<unsigned char>& before = w.buffers[i].bytes;
        std::vector<unsigned char> after(before.size());
        TILEWRIGHT_RETURN_IF_ERROR(device_->copy_to_host(after.data(), buffers_[i].get(), int64_t(after.size())));
        for (const Tensor* output : w.written())
            if (output->buffer == int(i)) copy_elements(*output, after, before);
        auto [differs, _] = std::ranges::mismatch(after, before);
        if (differs == after.end()) continue;
        int64_t at = differs - after.begin(), end = int64_t(after.size()) - Buffer::guard_bytes;
        std::string where = at < Buffer::guard_bytes ? std::to_string(Buffer::guard_bytes - at) + " bytes before its start"
                            : at >= end              ? std::to_string(at - end) + " bytes past its end"
                                                     : "at byte " + std::to_string(at - Buffer::guard_bytes) + ", which is none of the result";
        return std::string("the kernel wrote into the buffer of ") + buffer_name(w, int(i)) + " " + where;
    }
    return std::string();
}

KernelSpec spec_for(const Workload& w, const Config& config, KernelKind kind) {
    KernelSpec spec{kind, w.problem, config};
    spec.aligned = aligned(w.query) && aligned(w.key) && aligned(w.value) && aligned(w.out);
    for (const Tensor* tensor : {&w.out_gradient, &w.query_gradient, &w.key_gradient, &w.value_gradient})
        if (tensor->present()) spec.aligned = spec.aligned && aligned(*tensor);
    spec.rescaled = !is_backward(kind) && !(w.scale > 0);
    return spec;
}

}  // namespace tilewright
