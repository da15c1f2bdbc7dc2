// Runs emulated backward kernels on packed sequences, and compares each with the CPU's backward of it alone.
#include "packed_backward.h"

#include <utility>

#include "backends/launch.h"
#include "backends/operation_plan.h"
#include "runtime/packed_backward_call.h"

namespace tilewright::emulated {
namespace {

kernel::BackwardParameters parameters_of(PackedBackwardCall& call) {
    const Problem& p = call.problem;
    const BackwardTensors t = call.backward_tensors();
    const PackedSequences s = call.sequences();
    auto strides = [](const auto& tensor) { return kernel::Strides{tensor.row_stride, tensor.head_stride, tensor.row_stride}; };
    Problem flat = p;
    flat.batch = 1, flat.seq_q = call.query_rows, flat.seq_kv = call.key_rows;
    kernel::BackwardParameters b{};
    kernel::ForwardParameters& f = b.forward;
    f = sized_parameters(flat, default_scale(p), 0);
    f.query = t.forward.query.data, f.key = t.forward.key.data, f.value = t.forward.value.data, f.out = t.forward.out.data, f.lse = t.forward.lse, f.sink = t.forward.sink;
    f.query_strides = strides(t.forward.query), f.key_strides = strides(t.forward.key), f.value_strides = strides(t.forward.value), f.out_strides = strides(t.forward.out);
    b.out_gradient = t.out_gradient.data, b.lse_gradient = t.lse_gradient, b.sink_gradient = t.sink_gradient;
    b.query_gradient = t.query_gradient.data, b.key_gradient = t.key_gradient.data, b.value_gradient = t.value_gradient.data;
    b.out_gradient_strides = strides(t.out_gradient), b.query_gradient_strides = strides(t.query_gradient);
    b.key_gradient_strides = strides(t.key_gradient), b.value_gradient_strides = strides(t.value_gradient);
    b.query_starts = s.query_starts, b.key_starts = s.key_starts, b.sequences = static_cast<int>(p.batch), b.wide = s.type == IndexType::int64;
    return b;
}

void expect_right(const EmulatedBackward& kernels, PackedBackwardCall call, int order, int poisoned = -1) {
    kernel::BackwardParameters parameters = parameters_of(call);
    const BackwardWorkspace needed = packed_backward_workspace(call.problem, call.query_rows);
    std::vector<float> workspace(static_cast<size_t>(needed.bytes()) / sizeof(float), NAN);
    use_workspace(needed, workspace.data(), parameters);
    for (auto [pass, kind] : {std::pair{Pass::prologue, KernelKind::attention_backward_prologue}, {Pass::keys, KernelKind::attention_backward_keys},
                              {Pass::queries, KernelKind::attention_backward_queries}, {Pass::sink, KernelKind::attention_backward_sink}}) {
        if (pass == Pass::sink && !call.problem.sink) continue;
        KernelSpec spec{kind, call.problem, {}};
        spec.problem.packed = true, spec.config.block_q = kernels.block_q, spec.config.block_kv = kernels.block_kv;
        if (kernels.swaps && pass == Pass::queries) std::swap(spec.config.block_q, spec.config.block_kv);
        fill_work_order(spec, parameters);
        EXPECT_EQ(kernels.run(pass, parameters, order), "") << kernels.name;
    }
    call.expect_gradients(kernels.name + " order " + std::to_string(order), poisoned);
}

PackedBackwardCall call_for(const EmulatedBackward& kernels, std::vector<int64_t> queries, std::vector<int64_t> keys, unsigned seed, int poisoned = -1) {
    return {("backward:hq4,hkv2," + kernels.problem).c_str(), std::move(queries), std::move(keys), seed, poisoned};
}

}  // namespace

void expect_right_packed_backward(const EmulatedBackward& kernels) {
    std::mt19937 random(3);
    for (unsigned seed = 1; seed <= 3; ++seed) {
        std::vector<int64_t> queries = random_lengths(random, 4, 50);
        expect_right(kernels, call_for(kernels, std::move(queries), random_lengths(random, 4, 80), seed), static_cast<int>(seed - 1));
    }
    expect_right(kernels, call_for(kernels, {20, 9, 33}, {31, 40, 20}, 2, 1), 3, 1);  // NaN in one sequence reaches no other
}

}  // namespace tilewright::emulated
