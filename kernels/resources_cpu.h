// What a CPU thread's scratch holds; the host asks, the kernel asserts.
#pragma once
#include "tile/element.h"

namespace tilewright::kernel {

// Operands of the two products in scratch: queries [block_q][depth], keys turned [depth][block_kv], values [block_kv][width].
// With 16-bit dot products neighbours along the summed dimension are stored as pairs, so it is padded to an even size.
struct CpuScratch {
    int depth, width, element_bytes;
    long long query_bytes, key_bytes, value_bytes;
    constexpr long long bytes() const { return query_bytes + key_bytes + value_bytes; }
};
constexpr CpuScratch cpu_scratch(int head_dim, int head_dim_v, int block_q, int block_kv, int vector_floats, bool dot16) {
    CpuScratch s{};
    s.depth = dot16 ? round_up(head_dim, 2) : head_dim;
    s.width = round_up(head_dim_v, vector_floats);
    s.element_bytes = dot16 ? 2 : 4;
    s.query_bytes = round_up(block_q * s.depth * s.element_bytes, 64);
    s.key_bytes = round_up(block_kv * s.depth * s.element_bytes, 64);
    s.value_bytes = round_up(block_kv * s.width * s.element_bytes, 64);
    return s;
}

// Decoding keeps only the queries in scratch, [block_q][head_dim padded to vectors]: keys and values are read where they lie.
constexpr long long cpu_decode_scratch_bytes(int head_dim, int block_q, int vector_floats) {
    return 4LL * block_q * round_up(head_dim, vector_floats);
}

}  // namespace tilewright::kernel
