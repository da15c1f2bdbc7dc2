// Backward and decode on the device in host memory, in plain float loops, with faults to order: what their cases must let pass, and what they must catch.
#pragma once
#include <map>

#include "tests/verify/fake_device.h"

namespace tilewright::test {

enum class OperationFault {
    none,
    delta_forgotten,      // backward: dS = P dP
    one_head_of_group,    // dK and dV of the group's last query head alone
    unscaled,             // dQ without the scale
    lse_gradient_ignored,
    slope_ignored,        // of a softcap
    sink_signed,          // dSink with its sign turned
    nan_kept,             // hidden pairs count 0 times what they hold
    dense_out_gradient,   // its strides are not looked at
    bias_of_last_batch,   // dBias is not summed over batches
    bias_through_softcap, // dBias counts the softcap's slope
    bias_garbage_kept,    // pairs that a bias hides count 0 times what they hold
    lengths_ignored,      // decode: all sequences have seq_kv keys
    table_ignored,        // pages lie one behind the other
    tail_of_longest,      // queries are aligned with seq_kv
    last_key_dropped,
    sink_dropped,         // of empty sequences
};

class FakeOperations : public FakeDevice {
public:
    explicit FakeOperations(OperationFault fault) : fault_(fault) {}
    using FakeDevice::launch;

    // All gradients with the pass over keys; the other kernels do nothing.
    Status launch(Kernel& kernel, const kernel::BackwardParameters& p, void*) override {
        const KernelSpec& spec = static_cast<FakeKernel&>(kernel).spec;
        if (spec.kind != KernelKind::attention_backward_keys) return {};
        if (spec.problem.sink) std::fill(p.sink_gradient, p.sink_gradient + p.forward.heads_q, 0.0f);
        lse_rows_ = p.forward.seq_q;
        if (!spec.problem.packed) return backward(spec.problem, p);
        auto start = [&](const void* starts, int i) { return p.wide ? static_cast<const int64_t*>(starts)[i] : int64_t{static_cast<const int*>(starts)[i]}; };
        for (int s = 0; s < p.sequences; ++s) {
            kernel::BackwardParameters one = p;
            kernel::ForwardParameters& f = one.forward;
            const int64_t query = start(p.query_starts, s), key = start(p.key_starts, s);
            f.seq_q = int(start(p.query_starts, s + 1) - query), f.seq_kv = int(start(p.key_starts, s + 1) - key);
            f.diagonal = p.top_left ? 0 : f.seq_kv - f.seq_q;
            auto advance = [&]<class Pointer>(Pointer& data, const kernel::Strides& strides, int64_t first) {
                data = static_cast<char*>(const_cast<void*>(static_cast<const void*>(data))) + first * strides.row * int64_t(size_of(spec.problem.dtype));
            };
            advance(f.query, f.query_strides, query), advance(f.key, f.key_strides, key), advance(f.value, f.value_strides, key), advance(f.out, f.out_strides, query);
            advance(one.out_gradient, p.out_gradient_strides, query), advance(one.query_gradient, p.query_gradient_strides, query);
            advance(one.key_gradient, p.key_gradient_strides, key), advance(one.value_gradient, p.value_gradient_strides, key);
            f.lse += query;
            if (one.lse_gradient) one.lse_gradient += query;
            TILEWRIGHT_RETURN_IF_ERROR(backward(spec.problem, one));
        }
        return {};
    }

    Status backward(const Problem& problem, const kernel::BackwardParameters& p) {
        const kernel::ForwardParameters& f = p.forward;
        int d = int(problem.head_dim), d_v = int(problem.head_dim_v), group = f.heads_q / f.heads_kv;
        BiasSums bias = no_bias_sums(p);
        for (int b = 0; b < f.batch; ++b) {
            if (has(OperationFault::bias_of_last_batch))
                for (auto& [place, sum] : bias) sum = p.bias_gradient_strides.batch ? sum : 0;
            for (int kv_head = 0; kv_head < f.heads_kv; ++kv_head) {
                std::vector<double> dk(size_t(f.seq_kv * d), 0), dv(size_t(f.seq_kv * d_v), 0);
                for (int h = kv_head * group; h < (kv_head + 1) * group; ++h) {
                    if (has(OperationFault::one_head_of_group)) std::fill(dk.begin(), dk.end(), 0), std::fill(dv.begin(), dv.end(), 0);
                    for (int i = 0; i < f.seq_q; ++i) backward_row(problem, p, b, h, kv_head, i, dk, dv, bias);
                }
                for (int j = 0; j < f.seq_kv; ++j) {
                    for (int c = 0; c < d; ++c) store(problem, p.key_gradient, p.key_gradient_strides, b, kv_head, j, c, dk[size_t(j * d + c)]);
                    for (int c = 0; c < d_v; ++c) store(problem, p.value_gradient, p.value_gradient_strides, b, kv_head, j, c, dv[size_t(j * d_v + c)]);
                }
            }
        }
        for (const auto& [place, sum] : bias) store(problem, p.bias_gradient, {}, 0, 0, 0, place, sum);
        return {};
    }

    // Each sequence as a forward over its keys, which are gathered.
    Status launch(Kernel& kernel, const kernel::DecodeParameters& p, void*) override {
        const FakeKernel& fake = static_cast<FakeKernel&>(kernel);
        const Problem& problem = fake.spec.problem;
        size_t element = size_of(problem.dtype);
        for (int b = 0; b < p.forward.batch; ++b) {
            kernel::ForwardParameters f = p.forward;
            int length = p.lengths && !has(OperationFault::lengths_ignored) ? p.lengths[b] : f.seq_kv;
            if (has(OperationFault::last_key_dropped) && length > 1) --length;
            std::vector<unsigned char> keys, values;
            for (auto [from, strides, columns, to] : {std::tuple{f.key, f.key_strides, problem.head_dim, &keys}, {f.value, f.value_strides, problem.head_dim_v, &values}}) {
                to->assign(size_t(f.heads_kv * length * columns) * element + 1, 0);
                for (int h = 0; h < f.heads_kv; ++h)
                    for (int j = 0; j < length; ++j) {
                        int batch = b, row = j;
                        if (p.block_table) {
                            int page = j >> p.page_shift;
                            batch = has(OperationFault::table_ignored) ? page : p.block_table[b * p.table_stride + page], row = j & ((1 << p.page_shift) - 1);
                        }
                        std::memcpy(to->data() + size_t((h * length + j) * columns) * element,
                                    static_cast<const unsigned char*>(from) + (batch * strides.batch + h * strides.head + row * strides.row) * int64_t(element), size_t(columns) * element);
                    }
            }
            auto advance = [&](const void* base, int64_t elements, size_t bytes) { return base ? static_cast<const unsigned char*>(base) + elements * int64_t(bytes) : nullptr; };
            f.batch = 1, f.seq_kv = length;
            f.diagonal = p.top_left ? 0 : (has(OperationFault::tail_of_longest) ? p.forward.seq_kv : length) - f.seq_q;
            f.query = advance(f.query, b * f.query_strides.batch, element), f.bias = advance(f.bias, b * f.bias_strides.batch, element);
            f.out = const_cast<unsigned char*>(advance(f.out, b * f.out_strides.batch, element));
            f.key = keys.data(), f.value = values.data();
            f.key_strides = {0, length * problem.head_dim, problem.head_dim}, f.value_strides = {0, length * problem.head_dim_v, problem.head_dim_v};
            if (f.lse) f.lse += int64_t(b) * f.heads_q * f.seq_q;
            if (has(OperationFault::sink_dropped) && length == 0) {
                FakeKernel without = fake;
                without.fault = Fault::sink_ignored;
                FakeLaunch(without, f, 1).run();
            } else {
                FakeLaunch(fake, f, 1).run();
            }
        }
        return {};
    }

private:
    using BiasSums = std::map<int64_t, double>;  // by the element of the gradient
    static int64_t bias_place(const kernel::BackwardParameters& p, int b, int h, int i, int j) {
        const kernel::Strides& s = p.bias_gradient_strides;
        return b * s.batch + h * s.head + i * s.row + j * p.bias_gradient_column_stride;
    }
    static BiasSums no_bias_sums(const kernel::BackwardParameters& p) {
        BiasSums sums;
        if (!p.bias_gradient) return sums;
        const kernel::Strides& s = p.bias_gradient_strides;
        for (int b = 0; b < (s.batch ? p.forward.batch : 1); ++b)
            for (int h = 0; h < (s.head ? p.forward.heads_q : 1); ++h)
                for (int i = 0; i < (s.row ? p.forward.seq_q : 1); ++i)
                    for (int j = 0; j < (p.bias_gradient_column_stride ? p.forward.seq_kv : 1); ++j) sums[bias_place(p, b, h, i, j)] = 0;
        return sums;
    }
    bool has(OperationFault fault) const { return fault_ == fault; }

    static double load(const Problem& problem, const void* base, const kernel::Strides& s, int b, int h, int r, int64_t c) {
        int64_t offset = b * s.batch + h * s.head + r * s.row + c;
        return load_element(problem.dtype, static_cast<const char*>(base) + offset * int64_t(size_of(problem.dtype)));
    }
    static void store(const Problem& problem, void* base, const kernel::Strides& s, int b, int h, int r, int64_t c, double x) {
        int64_t offset = b * s.batch + h * s.head + r * s.row + c;
        store_element(problem.dtype, static_cast<char*>(base) + offset * int64_t(size_of(problem.dtype)), x);
    }

    void backward_row(const Problem& problem, const kernel::BackwardParameters& p, int b, int h, int kv_head, int i, std::vector<double>& dk, std::vector<double>& dv,
                      BiasSums& bias_sums) const {
        const kernel::ForwardParameters& f = p.forward;
        int d = int(problem.head_dim), d_v = int(problem.head_dim_v), aligned = i + f.diagonal;
        int begin = std::max(0, aligned - f.window_left), end = std::min(f.seq_kv, aligned + 1 + f.window_right);
        int64_t row = (int64_t(b) * f.heads_q + h) * lse_rows_ + i;
        kernel::Strides strides = p.out_gradient_strides;
        if (has(OperationFault::dense_out_gradient)) strides = {int64_t(f.heads_q) * f.seq_q * d_v, int64_t(f.seq_q) * d_v, d_v};
        auto out_gradient = [&](int c) { return load(problem, p.out_gradient, strides, b, h, i, c); };
        double lse = f.lse[row], delta = 0;
        std::vector<double> dq(size_t(d), 0);
        for (int c = 0; c < d_v && end > begin; ++c) delta += out_gradient(c) * load(problem, f.out, f.out_strides, b, h, i, c);
        if (p.lse_gradient && !has(OperationFault::lse_gradient_ignored)) delta -= double(p.lse_gradient[row]);
        if (problem.sink && lse != -INFINITY) p.sink_gradient[h] -= float((has(OperationFault::sink_signed) ? -1 : 1) * std::exp(double(f.sink[h]) - lse) * delta);
        for (int j = 0; j < f.seq_kv; ++j) {
            bool hidden = j < begin || j >= end || lse == -INFINITY;
            if (hidden && !has(OperationFault::nan_kept)) continue;
            double score = 0, towards = 0, slope = 1;
            for (int c = 0; c < d; ++c) score += load(problem, f.query, f.query_strides, b, h, i, c) * load(problem, f.key, f.key_strides, b, kv_head, j, c);
            for (int c = 0; c < d_v; ++c) towards += out_gradient(c) * load(problem, f.value, f.value_strides, b, kv_head, j, c);
            score *= double(f.scale);
            if (problem.softcap) {
                double bent = std::tanh(score / double(f.softcap));
                score = double(f.softcap) * bent, slope = has(OperationFault::slope_ignored) ? 1 : 1 - bent * bent;
            }
            double bias = problem.bias ? load(problem, f.bias, f.bias_strides, b, h, i, j * f.bias_column_stride) : 0;
            if (bias == -INFINITY && !has(OperationFault::bias_garbage_kept)) continue;
            score += bias;
            if (problem.alibi) score -= double(f.slope[h]) * std::abs(aligned - j);
            double probability = hidden ? 0 : std::exp(score - lse), of_score = probability * (towards - (has(OperationFault::delta_forgotten) ? 0 : delta)), change = of_score * slope;
            if (p.bias_gradient && !hidden) bias_sums[bias_place(p, b, h, i, j)] += has(OperationFault::bias_through_softcap) ? change : of_score;
            double scaled = change * double(f.scale);
            for (int c = 0; c < d; ++c) {
                dq[size_t(c)] += (has(OperationFault::unscaled) ? change : scaled) * load(problem, f.key, f.key_strides, b, kv_head, j, c);
                dk[size_t(j * d + c)] += scaled * load(problem, f.query, f.query_strides, b, h, i, c);
            }
            for (int c = 0; c < d_v; ++c) dv[size_t(j * d_v + c)] += probability * out_gradient(c);
        }
        for (int c = 0; c < d; ++c) store(problem, p.query_gradient, p.query_gradient_strides, b, h, i, c, dq[size_t(c)]);
    }

    OperationFault fault_;
    int64_t lse_rows_ = 0;  // of a head
};

}  // namespace tilewright::test
