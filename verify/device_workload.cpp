// A workload on a device.
#include "verify/device_workload.h"

#include <algorithm>
#include <cstring>

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

// From the first row of a packed sequence back to the first row that there is.
void* from_first_row(const void* data, const Tensor& tensor, const std::vector<int64_t>& starts) {
    return const_cast<unsigned char*>(static_cast<const unsigned char*>(data) - starts.front() * tensor.strides[2] * int64_t(size_of(tensor.dtype)));
}

bool aligned(const Tensor& tensor) {
    int64_t element = int64_t(size_of(tensor.dtype)), any = tensor.offset;
    for (size_t i = 0; i < 3; ++i) any |= tensor.strides[i] * element;
    return any >= 0 && any % 16 == 0 && tensor.sizes[3] % 8 == 0;  // negative if any stride is
}

}  // namespace

Result<DeviceWorkload> DeviceWorkload::upload(Device& device, const Workload& w) {
    DeviceWorkload on(device);
    on.parameters_ = parameters_of(w.problem);
    for (const Buffer& buffer : w.buffers) {
        TILEWRIGHT_ASSIGN_OR_RETURN(void* address, device.allocate(int64_t(buffer.bytes.size())));
        on.buffers_.emplace_back(address, DeviceFree{&device});
    }
    TILEWRIGHT_RETURN_IF_ERROR(on.restore(w));
    auto address = [&](const Tensor& tensor) -> void* {
        return tensor.present() ? static_cast<unsigned char*>(on.buffers_[size_t(tensor.buffer)].get()) + tensor.offset : nullptr;
    };
    kernel::ForwardParameters& p = forward_part(on.parameters_);
    Problem sized = w.problem;
    if (w.problem.packed) sized.batch = 1, sized.seq_q = w.query_rows, sized.seq_kv = w.key_rows;
    p = sized_parameters(sized, w.scale, w.softcap);
    p.query = address(w.query), p.key = address(w.key), p.value = address(w.value), p.bias = address(w.bias);
    p.out = address(w.out), p.lse = static_cast<float*>(address(w.lse));
    p.slope = static_cast<const float*>(address(w.slope)), p.sink = static_cast<const float*>(address(w.sink));
    p.query_strides = strides_of(w.query), p.key_strides = strides_of(w.key), p.value_strides = strides_of(w.value);
    p.out_strides = strides_of(w.out), p.bias_strides = strides_of(w.bias), p.bias_column_stride = w.bias.strides[3];
    if (auto* packed = std::get_if<kernel::PackedParameters>(&on.parameters_)) TILEWRIGHT_RETURN_IF_ERROR(on.pack(w, *packed));
    if (auto* g = std::get_if<kernel::BackwardParameters>(&on.parameters_)) {
        g->out_gradient = address(w.out_gradient), g->lse_gradient = static_cast<const float*>(address(w.lse_gradient));
        g->query_gradient = address(w.query_gradient), g->key_gradient = address(w.key_gradient), g->value_gradient = address(w.value_gradient);
        g->sink_gradient = static_cast<float*>(address(w.sink_gradient)), g->bias_gradient = address(w.bias_gradient);
        g->bias_gradient_strides = strides_of(w.bias_gradient), g->bias_gradient_column_stride = w.bias_gradient.strides[3];
        g->out_gradient_strides = strides_of(w.out_gradient), g->query_gradient_strides = strides_of(w.query_gradient);
        g->key_gradient_strides = strides_of(w.key_gradient), g->value_gradient_strides = strides_of(w.value_gradient);
        if (w.problem.packed) {
            TILEWRIGHT_RETURN_IF_ERROR(on.pack(w, *g));
            g->out_gradient = from_first_row(g->out_gradient, w.out_gradient, w.query_starts), g->query_gradient = from_first_row(g->query_gradient, w.query_gradient, w.query_starts);
            g->key_gradient = from_first_row(g->key_gradient, w.key_gradient, w.key_starts), g->value_gradient = from_first_row(g->value_gradient, w.value_gradient, w.key_starts);
            if (g->lse_gradient) g->lse_gradient = static_cast<const float*>(from_first_row(g->lse_gradient, w.lse_gradient, w.query_starts));
            for (kernel::Strides* strides : {&g->out_gradient_strides, &g->query_gradient_strides, &g->key_gradient_strides, &g->value_gradient_strides}) strides->batch = strides->row;
        }
    }
    if (auto* d = std::get_if<kernel::DecodeParameters>(&on.parameters_)) {
        auto integers = [&](const std::vector<int32_t>& all) { return on.upload_integers(all.data(), int64_t(all.size() * sizeof(int32_t))); };
        TILEWRIGHT_ASSIGN_OR_RETURN(const void* lengths, integers(w.lengths));
        TILEWRIGHT_ASSIGN_OR_RETURN(const void* table, integers(w.block_table));
        d->lengths = static_cast<const int*>(lengths), d->block_table = static_cast<const int*>(table);
        if (!w.block_table.empty()) d->pages = static_cast<int>(w.key.sizes[0]);
        d->table_stride = w.table_stride, d->top_left = w.problem.alignment == Alignment::top_left;
        while (int64_t{1} << d->page_shift < w.problem.page_size) ++d->page_shift;
    }
    return on;
}

template <class Parameters>
Status DeviceWorkload::pack(const Workload& w, Parameters& packed) {
    kernel::ForwardParameters& p = packed.forward;
    p.query = from_first_row(p.query, w.query, w.query_starts), p.key = from_first_row(p.key, w.key, w.key_starts), p.value = from_first_row(p.value, w.value, w.key_starts);
    p.out = from_first_row(p.out, w.out, w.query_starts);
    if (p.lse) p.lse = static_cast<float*>(from_first_row(p.lse, w.lse, w.query_starts));
    for (kernel::Strides* strides : {&p.query_strides, &p.key_strides, &p.value_strides, &p.out_strides}) strides->batch = strides->row;
    packed.sequences = static_cast<int>(w.problem.batch), packed.wide = w.wide_starts, packed.top_left = w.problem.alignment == Alignment::top_left;
    auto starts = [&](const std::vector<int64_t>& all) -> Result<const void*> {
        if (w.wide_starts) return upload_integers(all.data(), int64_t(all.size() * sizeof(int64_t)));
        std::vector<int32_t> narrow(all.begin(), all.end());
        return upload_integers(narrow.data(), int64_t(narrow.size() * sizeof(int32_t)));
    };
    TILEWRIGHT_ASSIGN_OR_RETURN(packed.query_starts, starts(w.query_starts));
    TILEWRIGHT_ASSIGN_OR_RETURN(packed.key_starts, starts(w.key_starts));
    return {};
}

Result<const void*> DeviceWorkload::upload_integers(const void* numbers, int64_t bytes) {
    if (bytes == 0) return static_cast<const void*>(nullptr);
    TILEWRIGHT_ASSIGN_OR_RETURN(void* address, device_->allocate(bytes));
    integers_.emplace_back(address, DeviceFree{device_});
    TILEWRIGHT_RETURN_IF_ERROR(device_->copy_to_device(address, numbers, bytes));
    return static_cast<const void*>(address);
}

Result<DeviceWorkload::Bound> DeviceWorkload::bind(const OperationPlan& plan) const {
    Bound bound{{nullptr, DeviceFree{device_}}, parameters_};
    if (plan.workspace_bytes > 0) {
        TILEWRIGHT_ASSIGN_OR_RETURN(void* workspace, device_->allocate(plan.workspace_bytes));
        bound.workspace.reset(workspace);
        TILEWRIGHT_RETURN_IF_ERROR(device_->fill(workspace, plan.workspace_zeroed ? 0 : 0xff, plan.workspace_bytes));
    }
    use_workspace(plan, bound.workspace.get(), bound.parameters);
    return bound;
}

Status DeviceWorkload::restore(const Workload& w) {
    for (size_t i = 0; i < w.buffers.size(); ++i)
        TILEWRIGHT_RETURN_IF_ERROR(device_->copy_to_device(buffers_[i].get(), w.buffers[i].bytes.data(), int64_t(w.buffers[i].bytes.size())));
    return {};
}

Status DeviceWorkload::reset_outputs(Workload& w) {
    w.blank_outputs();
    for (size_t i = 0; i < w.buffers.size(); ++i)
        if (const Buffer& buffer = w.buffers[i]; buffer.output)
            TILEWRIGHT_RETURN_IF_ERROR(device_->copy_to_device(buffers_[i].get(), buffer.bytes.data(), int64_t(buffer.bytes.size())));
    return {};
}

Result<std::string> DeviceWorkload::download(Workload& w) const {
    std::vector<unsigned char> after;
    for (size_t i = 0; i < w.buffers.size(); ++i) {
        std::vector<unsigned char>& before = w.buffers[i].bytes;
        after.resize(before.size());
        TILEWRIGHT_RETURN_IF_ERROR(device_->copy_to_host(after.data(), buffers_[i].get(), int64_t(after.size())));
        for (const Tensor* output : w.written())
            if (output->buffer == int(i)) copy_elements(*output, after, before);
        if (after == before) continue;
        auto [differs, _] = std::ranges::mismatch(after, before);
        int64_t at = differs - after.begin(), end = int64_t(after.size()) - Buffer::guard_bytes;
        std::string where = at < Buffer::guard_bytes ? std::to_string(Buffer::guard_bytes - at) + " bytes before its start"
                            : at >= end              ? std::to_string(at - end) + " bytes past its end"
                                                     : "at byte " + std::to_string(at - Buffer::guard_bytes) + ", which is none of the result";
        return std::string("the kernel wrote into the buffer of ") + name_of(w, {int(i)}) + " " + where;
    }
    return std::string();
}

CallTraits traits_of(const Workload& w) {
    CallTraits traits;
    for (const Tensor* tensor : {&w.query, &w.key, &w.value, &w.out, &w.out_gradient, &w.query_gradient, &w.key_gradient, &w.value_gradient})
        if (tensor->present()) traits.aligned = traits.aligned && aligned(*tensor);
    traits.rescaled = !(w.scale > 0), traits.paged = !w.block_table.empty(), traits.splits = w.splits;
    if (w.problem.packed) traits.query_rows = w.query_rows;
    return traits;
}

}  // namespace tilewright
