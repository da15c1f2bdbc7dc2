// What a forward kernel on AMD needs to be launched, and which configs there are kernels for: plain constexpr functions that
// the host and the kernels share (arch/amd.h asserts that it needs exactly these bytes).
#pragma once
#include "tile/element.h"

namespace tilewright::kernel {

enum class AmdFamily { cdna, rdna3, rdna4 };

struct AmdShape {  // the numbers of a config that decide
    int block_q, block_kv, stages, workers;
    int head_dim, head_dim_v;
};

struct AmdResources {
    int wave;    // lanes
    int side;    // of the matrix instruction: rows of a wave's strip of queries, and of an operand's tile
    int depth;   // of the operands that one step of a product takes
    int threads;
    int key_dim, value_dim;  // head dimensions, padded with zeros
    bool queries_in_lds;     // else in registers
    int shared_bytes;
};

// A wave whose rows are a multiple of 32 uses MFMA 32x32x8 on CDNA, else 16x16x16.
constexpr AmdResources amd_resources(AmdFamily family, const AmdShape& s) {
    bool cdna = family == AmdFamily::cdna;
    AmdResources r{};
    r.wave = cdna ? 64 : 32;
    r.side = cdna && s.block_q / s.workers % 32 == 0 ? 32 : 16;
    r.depth = cdna && r.side == 16 ? 32 : 16;
    r.threads = r.wave * s.workers;
    r.key_dim = round_up(s.head_dim, r.depth), r.value_dim = round_up(s.head_dim_v, r.side);
    // RDNA3's operands are held twice, and 256 columns fill half of RDNA4's registers.
    r.queries_in_lds = family == AmdFamily::rdna3 || (family == AmdFamily::rdna4 && r.key_dim > 128);
    r.shared_bytes = 2 * s.stages * s.block_kv * (r.key_dim + r.value_dim) + (r.queries_in_lds ? 2 * s.block_q * r.key_dim : 0);
    return r;
}

// Null, or why there is no kernel for this config. Registers and LDS are limited by the architecture's row, not here.
constexpr const char* amd_restriction(AmdFamily family, const AmdShape& s) {
    if (s.workers < 1 || (s.workers & (s.workers - 1)) != 0) return "workers (waves) must be a power of two";
    if (s.block_q < 1 || s.block_q % (16 * s.workers) != 0) return "block_q must be a multiple of 16 rows for each of `workers` waves";
    AmdResources r = amd_resources(family, s);
    if (s.block_kv < 1 || (s.block_kv & (s.block_kv - 1)) != 0 || s.block_kv % r.depth != 0 || s.block_kv % r.side != 0)
        return "block_kv must be a power of two of at least 32 (16 on RDNA)";
    if (r.threads > 1024) return "a block has at most 1024 lanes: fewer workers";
    if (s.stages < 1 || s.stages > 2) return "stages must be 1 or 2";
    // A lane of a wide wave holds 16 rows of 512 columns of output in 128 registers; elsewhere that is all there are.
    if (s.head_dim < 1 || s.head_dim_v < 1 || s.head_dim > (family == AmdFamily::cdna ? 576 : 256) || s.head_dim_v > (family == AmdFamily::cdna ? 512 : 256))
        return family == AmdFamily::cdna ? "head dimensions must be 1 to 576, of values 1 to 512" : "head dimensions must be 1 to 256";
    return nullptr;
}

// The backward's passes: products of a tile's rows with tiles of columns, of which `scored` makes S and `carried` dP.
struct AmdBackwardShape {
    int rows, columns, workers, scored_depth, carried_depth;
    bool gives_scored, gives_carried, gives_bias;
    constexpr bool differentiates() const { return gives_scored || gives_bias; }
};
constexpr int amd_backward_rows_threads = 256;
// Where things are in LDS, of what is scored [0] and carried [1], in bytes: rows on RDNA, where registers are few, and columns, straight
// for S and dP, transposed for the gradients.
struct AmdBackwardLds {
    bool holds_rows;
    int row[2], straight[2], transposed[2], bytes;
};
// `scored` and `carried`: the resources of the same tile as a forward's, with either depth.
constexpr AmdBackwardLds amd_backward_lds(const AmdResources& scored, const AmdResources& carried, const AmdBackwardShape& s) {
    AmdBackwardLds l{};
    l.holds_rows = scored.wave == 32;
    auto place = [&](bool needed, int members, int width) {
        int at = l.bytes;
        l.bytes += needed ? 2 * members * width : 0;
        return at;
    };
    l.row[0] = place(l.holds_rows, s.rows, scored.key_dim), l.row[1] = place(l.holds_rows && s.differentiates(), s.rows, carried.key_dim);
    l.straight[0] = place(true, s.columns, scored.key_dim), l.straight[1] = place(s.differentiates(), s.columns, carried.key_dim);
    l.transposed[0] = place(s.gives_scored, s.columns, scored.value_dim), l.transposed[1] = place(s.gives_carried, s.columns, carried.value_dim);
    if (s.gives_bias && l.bytes < 4 * s.rows * s.columns) l.bytes = 4 * s.rows * s.columns;  // the tile of the gradient, in the end
    return l;
}
constexpr AmdShape amd_backward_view(const AmdBackwardShape& s, int depth) { return {s.rows, s.columns, 1, s.workers, depth, depth}; }

}  // namespace tilewright::kernel
