// Runs an emulated decode kernel.
#include "decode.h"

#include <cmath>

#include "kernels/decode_part.h"
#include "runtime/decode_call.h"

namespace tilewright::emulated {

void expect_right(const DecodeKernel& kernel, DecodeCall call, int units, int order) {
    const Problem& p = call.problem;
    const DecodeTensors t = call.tensors();
    auto strides = [](const auto& tensor) { return kernel::Strides{tensor.batch_stride, tensor.head_stride, tensor.row_stride}; };
    kernel::DecodeParameters decode{};
    kernel::ForwardParameters& f = decode.forward;
    f.query = t.query.data, f.key = t.key.data, f.value = t.value.data, f.out = t.out.data, f.lse = t.lse, f.sink = t.sink, f.slope = t.alibi_slope, f.bias = t.bias.data;
    f.query_strides = strides(t.query), f.key_strides = strides(t.key), f.value_strides = strides(t.value), f.out_strides = strides(t.out);
    f.bias_strides = strides(t.bias), f.bias_column_stride = t.bias.column_stride, f.softcap = t.softcap;
    f.batch = static_cast<int>(p.batch), f.heads_q = static_cast<int>(p.heads_q), f.heads_kv = static_cast<int>(p.heads_kv);
    f.seq_q = static_cast<int>(p.seq_q), f.seq_kv = static_cast<int>(p.seq_kv);
    f.scale = 1 / std::sqrt(static_cast<float>(p.head_dim));
    f.window_left = p.window_left < 0 ? 1 << 20 : static_cast<int>(p.window_left), f.window_right = p.window_right < 0 ? 1 << 20 : static_cast<int>(p.window_right);
    decode.lengths = t.lengths, decode.block_table = t.block_table, decode.table_stride = t.table_stride, decode.units = units, decode.pages = static_cast<int>(t.pages);
    while (int64_t{1} << decode.page_shift < t.page_size) ++decode.page_shift;
    const int lines = f.heads_kv * ((f.seq_q * (f.heads_q / f.heads_kv) + kernel.block_q - 1) / kernel.block_q);
    const auto rows = static_cast<size_t>(2 * units * lines * kernel.block_q);
    std::vector<float> sums(rows * static_cast<size_t>(kernel::partial_columns(static_cast<int>(p.head_dim_v))), NAN), state(rows * 2, NAN);
    std::vector<unsigned> arrived(static_cast<size_t>(f.batch * lines));
    decode.partial_out = sums.data(), decode.partial_state = state.data(), decode.arrived = arrived.data();
    EXPECT_EQ(kernel.run(decode, lines * units, order), "");
    call.expect_right(to_text(p) + " page " + std::to_string(t.page_size) + " units " + std::to_string(units) + " order " + std::to_string(order), true);
    for (const unsigned count : arrived) EXPECT_EQ(count, 0u);
}

}  // namespace tilewright::emulated
