// Runs an emulated kernel of packed sequences.
#include "packed.h"

#include <cmath>

#include "runtime/packed_call.h"

namespace tilewright::emulated {

void expect_right(const PackedKernel& kernel, PackedCall call, int order, int poisoned) {
    const Problem& p = call.problem;
    const ForwardTensors t = call.tensors();
    const PackedSequences s = call.sequences();
    auto strides = [](const auto& tensor) { return kernel::Strides{tensor.row_stride, tensor.head_stride, tensor.row_stride}; };
    unsigned dealt = 0;
    kernel::PackedParameters packed{};
    kernel::ForwardParameters& f = packed.forward;
    f.query = t.query.data, f.key = t.key.data, f.value = t.value.data, f.out = t.out.data, f.lse = t.lse, f.sink = t.sink;
    f.query_strides = strides(t.query), f.key_strides = strides(t.key), f.value_strides = strides(t.value), f.out_strides = strides(t.out);
    f.batch = 1, f.heads_q = static_cast<int>(p.heads_q), f.heads_kv = static_cast<int>(p.heads_kv);
    f.seq_q = static_cast<int>(call.query_rows), f.seq_kv = static_cast<int>(call.key_rows);
    f.scale = 1 / std::sqrt(static_cast<float>(p.head_dim));
    f.window_left = p.window_left < 0 ? 1 << 20 : static_cast<int>(p.window_left), f.window_right = p.window_right < 0 ? 1 << 20 : static_cast<int>(p.window_right);
    packed.query_starts = s.query_starts, packed.key_starts = s.key_starts, packed.sequences = static_cast<int>(p.batch);
    packed.wide = s.type == IndexType::int64, packed.top_left = p.alignment == Alignment::top_left;
    const int group = kernel.packs_heads ? f.heads_q / f.heads_kv : 1;
    f.section_heads = f.heads_q / group, f.tiles_dealt = &dealt;
    f.tiles = f.section_heads * (f.seq_q * group / kernel.block_q + packed.sequences);
    EXPECT_EQ(kernel.run(packed, order), "");
    EXPECT_EQ(dealt, 0u);
    call.expect_right(to_text(p) + " block_q " + std::to_string(kernel.block_q) + " order " + std::to_string(order), poisoned);
}

}  // namespace tilewright::emulated
