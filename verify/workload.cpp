// Tensors of one attention call: where their elements lie and what they hold.
#include "verify/workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "verify/element.h"
#include "verify/parallel.h"
#include "verify/random.h"
#include "verify/sequences.h"

namespace tilewright {
namespace {

constexpr unsigned char input_fill = 0xff;   // NaN in every element type
constexpr unsigned char output_fill = 0xa5;  // no number that a kernel would write

using Extent = std::array<int64_t, 4>;

Extent strides_of(Layout layout, const Extent& sizes) {
    auto [batch, heads, rows, columns] = sizes;
    switch (layout) {
        case Layout::heads_first: return {heads * rows * columns, rows * columns, columns, 1};
        case Layout::packed:  // the tensors that are not packed with others
        case Layout::rows_first: return {rows * heads * columns, columns, heads * columns, 1};
        case Layout::transposed: return {heads * columns, columns, batch * heads * columns, 1};
        case Layout::gapped: {
            int64_t row = (columns + 7) / 8 * 8 + 8, head = rows * row + 16;
            return {heads * head + 24, head, row, 1};
        }
        case Layout::unaligned: {
            int64_t row = columns + 3, head = rows * row + 5;
            return {heads * head + 1, head, row, 1};
        }
    }
    return {};
}

int64_t span_of(const Extent& sizes, const Extent& strides) {  // elements from the first to the last, inclusive
    int64_t span = 1;
    for (int i = 0; i < 4; ++i) {
        if (sizes[size_t(i)] == 0) return 0;
        span += (sizes[size_t(i)] - 1) * strides[size_t(i)];
    }
    return span;
}

Tensor add_tensor(Workload& workload, DType dtype, const Extent& sizes, const Extent& strides, int64_t first, bool output) {
    Tensor tensor{int(workload.buffers.size()), dtype, Buffer::guard_bytes + first * int64_t(size_of(dtype)), sizes, strides};
    Buffer buffer;
    buffer.output = output;
    int64_t contents = (first + span_of(sizes, strides)) * int64_t(size_of(dtype));
    buffer.bytes.assign(size_t(contents + 2 * Buffer::guard_bytes), output ? output_fill : input_fill);
    workload.buffers.push_back(std::move(buffer));
    return tensor;
}

// Query, key and value of one token side by side.
void add_packed(Workload& workload, const Problem& p) {
    int64_t heads = p.heads_q + 2 * p.heads_kv, row = heads * p.head_dim, bytes = int64_t(size_of(p.dtype));
    Extent strides{p.seq_q * row, p.head_dim, row, 1};
    workload.query = add_tensor(workload, p.dtype, {p.batch, heads, p.seq_q, p.head_dim}, strides, 0, false);
    workload.key = workload.value = workload.query;
    workload.query.sizes[1] = p.heads_q;
    workload.key.sizes[1] = workload.value.sizes[1] = p.heads_kv;
    workload.key.offset += p.heads_q * p.head_dim * bytes;
    workload.value.offset += (p.heads_q + p.heads_kv) * p.head_dim * bytes;
}

void fill_normal(Workload& workload, const Tensor& tensor, uint64_t seed, uint64_t stream, double spread) {
    auto [batch, heads, rows, columns] = tensor.sizes;
    parallel_for(batch * heads, 0, [&](int64_t i) {
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c)
                workload.set(tensor, i / heads, i % heads, r, c, spread * normal(seed, stream, uint64_t((i * rows + r) * columns + c)));
    });
}

}  // namespace

const char* name(Layout layout) {
    switch (layout) {
        case Layout::heads_first: return "heads_first";
        case Layout::rows_first: return "rows_first";
        case Layout::packed: return "packed";
        case Layout::transposed: return "transposed";
        case Layout::gapped: return "gapped";
        case Layout::unaligned: return "unaligned";
    }
    return "?";
}

Workload make_workload(const Problem& p, const WorkloadOptions& options) {
    Workload w;
    w.problem = p;
    w.scale = options.scale.value_or(float(1 / std::sqrt(double(p.head_dim))));
    w.softcap = p.softcap ? options.softcap : 0;

    const int64_t first = options.layout == Layout::unaligned ? 1 : 0, batches = p.packed ? 1 : p.batch;
    auto add = [&](int64_t heads, int64_t rows, int64_t columns, bool output) {
        Extent sizes{batches, heads, rows, columns};
        return add_tensor(w, p.dtype, sizes, strides_of(options.layout, sizes), first, output);
    };
    bool decode = p.operation == Operation::decode;
    deal_sequences(w, options);
    const int64_t queries = p.packed ? w.query_rows : p.seq_q, keys = p.packed ? w.key_rows : p.seq_kv;
    if (options.layout == Layout::packed && p.seq_q == p.seq_kv && p.head_dim == p.head_dim_v && !decode && !p.packed) {
        add_packed(w, p);
    } else {
        w.query = add(p.heads_q, queries, p.head_dim, false);
        for (auto [tensor, columns] : {std::pair{&w.key, p.head_dim}, {&w.value, p.head_dim_v}}) {
            Extent sizes{p.page_size > 0 ? pages_of(w) : batches, p.heads_kv, p.page_size > 0 ? p.page_size : keys, columns};
            *tensor = add_tensor(w, p.dtype, sizes, strides_of(options.layout, sizes), first, false);
        }
    }
    bool backward = p.operation == Operation::backward;
    w.out = add(p.heads_q, queries, p.head_dim_v, !backward);
    auto per_query = [&](bool output) { return add_tensor(w, DType::fp32, {batches, p.heads_q, queries, 1}, {p.heads_q * queries, queries, 1, 1}, 0, output); };
    if (options.lse || backward) w.lse = per_query(!backward);
    if (p.bias) {
        Extent sizes{p.batch, p.heads_q, p.seq_q, p.seq_kv}, held = sizes;
        for (size_t i = 0; i < 4; ++i)
            if (options.broadcast_bias[i]) held[i] = std::min<int64_t>(held[i], 1);
        Extent strides{held[1] * held[2] * held[3], held[2] * held[3], held[3], 1};
        for (size_t i = 0; i < 4; ++i)
            if (options.broadcast_bias[i]) strides[i] = 0;
        w.bias = add_tensor(w, p.dtype, sizes, strides, first, false);
        for (size_t i = 0; i < 4; ++i)
            if (options.broadcast_bias[i]) held[i] = 1;  // zero where there is nothing to sum up
        if (backward) w.bias_gradient = add_tensor(w, p.dtype, held, strides, first, true);
    }
    auto per_head = [&](bool output) { return add_tensor(w, DType::fp32, {1, p.heads_q, 1, 1}, {p.heads_q, 1, 1, 1}, 0, output); };
    if (p.alibi) w.slope = per_head(false);
    if (p.sink) w.sink = per_head(false);
    if (backward) {
        w.out_gradient = add(p.heads_q, queries, p.head_dim_v, false);
        w.query_gradient = add(p.heads_q, queries, p.head_dim, true);
        w.key_gradient = add(p.heads_kv, keys, p.head_dim, true);
        w.value_gradient = add(p.heads_kv, keys, p.head_dim_v, true);
        if (options.lse) w.lse_gradient = per_query(false);
        if (p.sink) w.sink_gradient = per_head(true);
    }

    if (p.packed) show_sequences(w);
    fill_normal(w, w.query, options.seed, 1, options.spread);
    for (auto [tensor, stream, spread] : {std::tuple{&w.key, 2, options.spread}, {&w.value, 3, 1.0}}) {
        if (decode) fill_sequences(w, *tensor, options.seed, uint64_t(stream), spread);
        else fill_normal(w, *tensor, options.seed, uint64_t(stream), spread);
    }
    if (p.bias) {
        Tensor held = w.bias;
        for (size_t i = 0; i < 4; ++i)
            if (held.strides[i] == 0) held.sizes[i] = std::min<int64_t>(held.sizes[i], 1);
        fill_normal(w, held, options.seed, 4, 1);
    }
    for (int64_t h = 0; p.alibi && h < p.heads_q; ++h) w.set(w.slope, 0, h, 0, 0, std::exp2(-8.0 * double(h + 1) / double(p.heads_q)));
    if (p.sink) fill_normal(w, w.sink, options.seed, 5, 1);
    if (backward) fill_normal(w, w.out_gradient, options.seed, 6, 1);
    if (w.lse_gradient.present()) fill_normal(w, w.lse_gradient, options.seed, 7, 1);
    w.blank_outputs();
    return w;
}

TensorView Workload::view(const Tensor& tensor) const {
    if (!tensor.present()) return {};
    return {buffers[size_t(tensor.buffer)].bytes.data() + tensor.offset, tensor.dtype, tensor.strides};
}

double Workload::get(const Tensor& tensor, int64_t batch, int64_t head, int64_t row, int64_t column) const {
    return view(tensor).at(batch, head, row, column);
}

void Workload::set(const Tensor& tensor, int64_t batch, int64_t head, int64_t row, int64_t column, double number) {
    int64_t offset = batch * tensor.strides[0] + head * tensor.strides[1] + row * tensor.strides[2] + column * tensor.strides[3];
    store_element(tensor.dtype, buffers[size_t(tensor.buffer)].bytes.data() + tensor.offset + offset * int64_t(size_of(tensor.dtype)), number);
}

void Workload::fill(const Tensor& tensor, double number) {
    const auto [batch, heads, rows, columns] = tensor.sizes;
    const auto element = static_cast<int64_t>(size_of(tensor.dtype));
    std::vector<unsigned char> row(static_cast<size_t>(columns * element));
    for (int64_t c = 0; c < columns; ++c) store_element(tensor.dtype, row.data() + c * element, number);
    unsigned char* first = buffers[size_t(tensor.buffer)].bytes.data() + tensor.offset;
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < heads; ++h)
            for (int64_t r = 0; r < rows; ++r) {
                unsigned char* to = first + (b * tensor.strides[0] + h * tensor.strides[1] + r * tensor.strides[2]) * element;
                if (tensor.strides[3] == 1) std::memcpy(to, row.data(), row.size());
                else
                    for (int64_t c = 0; c < columns; ++c) std::memcpy(to + c * tensor.strides[3] * element, row.data(), size_t(element));
            }
}

std::vector<const Tensor*> Workload::written() const {
    std::vector<const Tensor*> all{&out, &lse};
    if (problem.operation == Operation::backward) all = {&query_gradient, &key_gradient, &value_gradient, &bias_gradient, &sink_gradient};
    std::erase_if(all, [](const Tensor* tensor) { return !tensor->present(); });
    return all;
}

void Workload::blank_outputs() {
    for (const Tensor* tensor : written()) {
        std::ranges::fill(buffers[size_t(tensor->buffer)].bytes, output_fill);
        fill(*tensor, std::numeric_limits<double>::quiet_NaN());
    }
}

const char* name_of(const Workload& w, const Tensor& tensor) {
    struct Named {
        const char* name;
        Tensor Workload::*tensor;
    };
    constexpr Named all[] = {{"out", &Workload::out},
                             {"lse", &Workload::lse},
                             {"query", &Workload::query},
                             {"key", &Workload::key},
                             {"value", &Workload::value},
                             {"bias", &Workload::bias},
                             {"slope", &Workload::slope},
                             {"sink", &Workload::sink},
                             {"out_gradient", &Workload::out_gradient},
                             {"lse_gradient", &Workload::lse_gradient},
                             {"query_gradient", &Workload::query_gradient},
                             {"key_gradient", &Workload::key_gradient},
                             {"value_gradient", &Workload::value_gradient},
                             {"bias_gradient", &Workload::bias_gradient},
                             {"sink_gradient", &Workload::sink_gradient}};
    for (const Named& named : all)
        if ((w.*named.tensor).buffer == tensor.buffer) return named.name;
    return "?";
}

AttentionInputs Workload::inputs() const {
    auto floats = [&](const Tensor& tensor) { return tensor.present() ? reinterpret_cast<const float*>(view(tensor).data) : nullptr; };
    return {problem, scale, softcap, view(query), view(key), view(value), view(bias), floats(slope), floats(sink)};
}

std::vector<double> Workload::elements(const Tensor& tensor) const {
    std::vector<double> all;
    if (!tensor.present()) return all;
    auto [batch, heads, rows, columns] = tensor.sizes;
    std::vector<float> row(static_cast<size_t>(columns));
    TensorView from = view(tensor);
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < heads; ++h)
            for (int64_t r = 0; r < rows; ++r) {
                load_elements(from.dtype, from.address(b, h, r, 0), from.strides[3], columns, row.data());
                all.insert(all.end(), row.begin(), row.end());
            }
    return all;
}

Answer Workload::outputs() const { return {elements(out), elements(lse)}; }

}  // namespace tilewright
