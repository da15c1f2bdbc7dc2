// A backward of packed sequences and its memory: every row of no sequence is NaN, and what each sequence must give is what a call of its own gives.
#pragma once
#include "runtime/opened.h"
#include "runtime/packed_call.h"

namespace tilewright {

struct PackedBackwardCall : PackedCall {
    std::vector<unsigned char> out_gradient, query_gradient, key_gradient, value_gradient;
    std::vector<float> lse_gradient, sink_gradient;

    // out and lse are the forward's, by the CPU.
    PackedBackwardCall(const char* text, std::vector<int64_t> queries, std::vector<int64_t> keys, unsigned seed = 1, int poisoned = -1)
        : PackedCall(text, std::move(queries), std::move(keys), seed, poisoned) {
        Problem forward = problem;
        forward.operation = Operation::forward;
        Status status = cpu().forward_packed(forward, tensors(), sequences());
        EXPECT_TRUE(status.ok()) << status.message();
        out_gradient.assign(out.size(), 0xff), lse_gradient.assign(lse.size(), NAN), sink_gradient.assign(sink.size(), NAN);
        query_gradient.assign(query.size(), 0xff), key_gradient.assign(key.size(), 0xff), value_gradient.assign(value.size(), 0xff);
        std::mt19937 random(seed + 100);
        std::normal_distribution<float> normal;
        const InputTensor o = view(out_gradient, problem.heads_q, query_rows, problem.head_dim_v);
        for (int64_t head = 0; head < problem.heads_q; ++head)
            for (int64_t row = query_starts.front(); row < query_starts.back(); ++row) {
                lse_gradient[static_cast<size_t>(head * query_rows + row)] = normal(random);
                for (int64_t c = 0; c < problem.head_dim_v; ++c) set(out_gradient, place(o, head, row) + c, normal(random));
            }
    }
    BackwardTensors backward_tensors() {
        const Problem& p = problem;
        auto written = [](const InputTensor& t) { return OutputTensor{const_cast<void*>(t.data), t.batch_stride, t.head_stride, t.row_stride, 1}; };
        BackwardTensors t;
        t.forward = tensors();
        t.out_gradient = view(out_gradient, p.heads_q, query_rows, p.head_dim_v), t.lse_gradient = lse_gradient.data();
        t.query_gradient = written(view(query_gradient, p.heads_q, query_rows, p.head_dim)), t.key_gradient = written(view(key_gradient, p.heads_kv, key_rows, p.head_dim));
        t.value_gradient = written(view(value_gradient, p.heads_kv, key_rows, p.head_dim_v));
        if (p.sink) t.sink_gradient = sink_gradient.data();
        return t;
    }

    // Gradients of every sequence, and NaN in rows of none. Of sequences that are not `poisoned` none is NaN.
    void expect_gradients(const std::string& what, int poisoned = -1) const {
        std::vector<double> sinks(sink.size());
        for (size_t s = 0; s < query_lengths.size(); ++s) expect_sequence(what + ", sequence " + std::to_string(s), s, static_cast<int>(s) == poisoned, sinks);
        for (size_t head = 0; problem.sink && poisoned < 0 && head < sinks.size(); ++head) EXPECT_NEAR(sink_gradient[head], sinks[head], tolerance() * 20) << what << ", sink " << head;
        expect_unused(what, query_gradient, problem.heads_q, query_rows, problem.head_dim, query_starts);
        expect_unused(what, key_gradient, problem.heads_kv, key_rows, problem.head_dim, key_starts);
        expect_unused(what, value_gradient, problem.heads_kv, key_rows, problem.head_dim_v, key_starts);
    }

private:
    double tolerance() const { return problem.dtype == DType::fp32 ? 2e-5 : 0x1p-5; }

    void expect_unused(const std::string& what, const std::vector<unsigned char>& of, int64_t heads, int64_t rows, int64_t columns, const std::vector<int64_t>& starts) const {
        const InputTensor t = view(of, heads, rows, columns);
        for (int64_t head = 0; head < heads; ++head)
            for (int64_t row = 0; row < rows; ++row) {
                if (row >= starts.front() && row < starts.back()) continue;
                for (int64_t c = 0; c < columns; ++c) ASSERT_TRUE(std::isnan(get(of, place(t, head, row) + c))) << what << ": unused row " << row;
            }
    }

    // By a call of its own, whose tensors are views of the packed ones.
    void expect_sequence(const std::string& what, size_t s, bool poisoned, std::vector<double>& sinks) const {
        Problem one = problem;
        one.batch = 1, one.seq_q = query_lengths[s], one.seq_kv = key_lengths[s];
        PackedBackwardCall own = *this;
        for (auto* gradient : {&own.query_gradient, &own.key_gradient, &own.value_gradient}) gradient->assign(gradient->size(), 0xff);
        BackwardTensors t = own.backward_tensors();
        auto begin_at = [&](const std::vector<int64_t>& starts, auto&... tensors) {
            ((tensors.data = const_cast<unsigned char*>(static_cast<const unsigned char*>(tensors.data)) + starts[s] * tensors.row_stride * static_cast<int64_t>(element())), ...);
        };
        begin_at(query_starts, t.forward.query, t.forward.out, t.out_gradient, t.query_gradient);
        begin_at(key_starts, t.forward.key, t.forward.value, t.key_gradient, t.value_gradient);
        std::vector<float> own_lse, own_lse_gradient;
        for (int64_t head = 0; head < one.heads_q; ++head)
            for (int64_t i = 0; i < one.seq_q; ++i) {
                own_lse.push_back(lse[static_cast<size_t>(head * query_rows + query_starts[s] + i)]);
                own_lse_gradient.push_back(lse_gradient[static_cast<size_t>(head * query_rows + query_starts[s] + i)]);
            }
        t.forward.lse = own_lse.data(), t.lse_gradient = own_lse_gradient.data();
        std::vector<char> workspace(static_cast<size_t>(*cpu().backward_workspace_bytes(one)) + 16);
        t.workspace = workspace.data(), t.workspace_bytes = static_cast<int64_t>(workspace.size());
        if (one.seq_q == 0 && one.sink) t.forward.sink = nullptr;
        if (one.seq_q == 0 && one.alibi) t.forward.alibi_slope = nullptr;
        if (own_lse.empty()) t.forward.lse = nullptr;
        const Status status = cpu().backward(one, t);
        ASSERT_TRUE(status.ok()) << what << ": " << status.message();
        for (size_t head = 0; one.seq_q > 0 && head < own.sink_gradient.size() && one.sink; ++head) sinks[head] += double{own.sink_gradient[head]};
        auto compare = [&](const char* name, const std::vector<unsigned char>& is, const std::vector<unsigned char>& should, int64_t heads, int64_t rows, int64_t columns,
                           const std::vector<int64_t>& starts) {
            const InputTensor v = view(is, heads, rows, columns);
            for (int64_t head = 0; head < heads; ++head)
                for (int64_t row = starts[s]; row < starts[s + 1]; ++row)
                    for (int64_t c = 0; c < columns; ++c) {
                        const double x = get(is, place(v, head, row) + c), y = get(should, place(v, head, row) + c);
                        if (poisoned && std::isnan(y)) continue;
                        ASSERT_NEAR(x, y, tolerance() * std::max(1.0, std::abs(y))) << what << ", " << name << " head " << head << " row " << row - starts[s] << " column " << c;
                    }
        };
        compare("query_gradient", query_gradient, own.query_gradient, one.heads_q, query_rows, one.head_dim, query_starts);
        compare("key_gradient", key_gradient, own.key_gradient, one.heads_kv, key_rows, one.head_dim, key_starts);
        compare("value_gradient", value_gradient, own.value_gradient, one.heads_kv, key_rows, one.head_dim_v, key_starts);
    }
};

}  // namespace tilewright
