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

// The backward's operands: the tile's rows, of each tile of columns both the rows as they are and turned, and where the pass over keys gives dQ
// too, dS turned. Offsets in bytes.
struct CpuBackwardScratch {
    long long row_scored, row_carried, scored, scored_turned, carried, carried_turned, changes_turned, bytes;
};
constexpr CpuBackwardScratch cpu_backward_scratch(int head_dim, int head_dim_v, int rows, int columns, int vector_floats, bool gives_queries) {
    CpuBackwardScratch s{};
    auto place = [&](int members, int depth) {
        long long at = s.bytes;
        s.bytes += round_up(members * depth * 4, 64);
        return at;
    };
    int width = round_up(head_dim, vector_floats), width_v = round_up(head_dim_v, vector_floats);
    s.row_scored = place(rows, width), s.row_carried = place(rows, width_v);
    s.scored = place(columns, width), s.scored_turned = place(columns, head_dim);
    s.carried = place(columns, width_v), s.carried_turned = place(columns, head_dim_v);
    s.changes_turned = place(gives_queries ? rows : 0, columns);
    return s;
}

}  // namespace tilewright::kernel
