// What NVIDIA's architectures share: lane operations, and accumulators whose rows lie across four neighbouring lanes.
#pragma once
#include "../resources_nvidia.h"
#include "../tile/accumulator.h"
#include "lane.h"
#include "ptx.h"

namespace tilewright::kernel {
namespace nvidia {

struct Common : FloatLane {
    static constexpr bool votes_by_lane = true;  // no shuffles where none move
    static TILEWRIGHT_DEVICE float max(float a, float b) { return fmaxf(a, b); }  // drops NaN
    static TILEWRIGHT_DEVICE float exp2(float x) { return ptx::exp2(x); }
    // Of what is positive the reciprocal: the instruction takes its operand's magnitude and sign for nothing.
    static TILEWRIGHT_DEVICE float exp2_at_most_one(float x) { return ptx::exp2(-ptx::magnitude(x)); }
    static TILEWRIGHT_DEVICE float log2(float x) { return ptx::log2(x); }
    static TILEWRIGHT_DEVICE float reciprocal(float x) { return ptx::reciprocal(x); }  // the last bit may be wrong
    static TILEWRIGHT_DEVICE bool any(bool x) { return __any_sync(~0u, x); }
    // Which of a row's columns are visible, as bits of 32 at a time: predicates are made of several of them at once.
    template <bool has_begin, class Fragment>
    static TILEWRIGHT_DEVICE void hide_row(Fragment& scores, int r, int begin, int end) {
        int before_end = Fragment::columns_within(end - scores.column(0)), before_begin = has_begin ? Fragment::columns_within(begin - scores.column(0)) : 0;
        TILEWRIGHT_UNROLL for (int first = 0; first < Fragment::columns; first += 32) {
            unsigned visible = first_bits(before_end - first);
            if constexpr (has_begin) visible &= ~first_bits(before_begin - first);
            TILEWRIGHT_UNROLL for (int c = first; c < min_of(first + 32, Fragment::columns); ++c)
                scores.at(r, c) = select(visible >> (c - first) & 1, scores.at(r, c), -infinity);
        }
    }
    static TILEWRIGHT_DEVICE unsigned first_bits(int count) { return count >= 32 ? ~0u : (1u << max_of(count, 0)) - 1; }
    // Four neighbouring lanes share a row.
    static TILEWRIGHT_DEVICE float row_max(float x) {
        x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
        return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
    }
    static TILEWRIGHT_DEVICE float row_sum(float x) {
        x += __shfl_xor_sync(~0u, x, 1);
        return x + __shfl_xor_sync(~0u, x, 2);
    }
};

// What a lane of a warp (a warpgroup, with wgmma) holds of a tile of strips * m rows and N columns, of which the first `width`
// exist in memory. Warps (warpgroups) before the `first` hold none. `aligned`: rows in memory may be written in 16-byte pieces.
template <class Element_, class Instruction, int N, int strips_, int first, int width = N, bool aligned = true>
struct Accumulator {
    using Element = Element_;
    using Fragment = typename Instruction::Accumulator;
    using Position = Positions<Fragment, strips_, N>;
    static constexpr int strips = strips_, rows = Position::rows, columns = Position::columns, lanes = Fragment::table.lanes;
    static_assert(accumulator_is_left_operand(Fragment::table, Instruction::Left::table), "rounding makes the next left operand");
    static_assert(Position::sharers == 3 && Position::strip_rows == 2 && Position::element(0, 1) == 1 && Position::element(1, 0) == 2,
                  "row reductions, pairs and stores are for four lanes a row and pairs of columns");
    float d[strips][N / 2];

    TILEWRIGHT_DEVICE float& at(int r, int c) { return d[Position::strip(r)][Position::tile(c) * Fragment::table.elements + Position::element(r, c)]; }
    static TILEWRIGHT_DEVICE int lane() { return (int)threadIdx.x % lanes; }
    static TILEWRIGHT_DEVICE int row(int r) { return row_of((int)threadIdx.x, r); }
    static TILEWRIGHT_DEVICE int row_of(int thread, int r) { return (thread / lanes - first) * (strips * Position::height) + Position::row(thread % lanes, r); }
    static TILEWRIGHT_DEVICE int column(int c) { return Position::column(lane(), c); }
    // How many of a lane's columns, which are in pairs, lie less than `span` behind its first.
    static TILEWRIGHT_DEVICE int columns_within(int span) {
        span = max_of(span, 0);
        return span / Position::width * 2 + min_of(span % Position::width, 2);
    }
    static TILEWRIGHT_DEVICE bool leads_row() { return Position::leads_row(lane()); }
    TILEWRIGHT_DEVICE void clear() {
        TILEWRIGHT_UNROLL for (int s = 0; s < strips; ++s) TILEWRIGHT_UNROLL for (int i = 0; i < N / 2; ++i) d[s][i] = 0;
    }
    // Keeps the compiler from moving reads and writes across: the matrix unit works on these registers.
    TILEWRIGHT_DEVICE void settle() {
        TILEWRIGHT_UNROLL for (int s = 0; s < strips; ++s) TILEWRIGHT_UNROLL for (int i = 0; i < N / 2; ++i) ptx::settle(d[s][i]);
    }
    TILEWRIGHT_DEVICE float (&numbers())[N / 2] { return d[0]; }  // of a single strip
    // Two neighbouring columns, rounded: as they are in memory, and in the left operand.
    TILEWRIGHT_DEVICE unsigned pair(int s, int i, float factor = 1) { return ptx::pack(Element(), d[s][2 * i] * factor, d[s][2 * i + 1] * factor); }

    // Scales and rounds a row, in half of its registers, from where store_rounded_row takes it.
    TILEWRIGHT_DEVICE void round_row(int r, float factor) {
        TILEWRIGHT_UNROLL for (int i = 0; i < columns / 2; ++i) set_rounded(r, i, pair(r / 2, 2 * i + r % 2, factor));
    }
    TILEWRIGHT_DEVICE unsigned rounded(int r, int i) const { return __float_as_uint(d[r / 2][4 * i + r % 2 * 2]); }  // the i-th pair of columns
    TILEWRIGHT_DEVICE void set_rounded(int r, int i, unsigned pair) { d[r / 2][4 * i + r % 2 * 2] = __uint_as_float(pair); }
    TILEWRIGHT_DEVICE void store_rounded_row(int r, Element* to, bool inside) {
        // The four lanes of a row swap pairs of columns (a 4x4 transpose), so that each writes 16 bytes.
        constexpr int whole = aligned ? width / 32 * 8 : 0;
        TILEWRIGHT_UNROLL for (int c = 0; c < whole; c += 8) {
            unsigned x[4];
            TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i) x[i] = rounded(r, c / 2 + i);
            swap(x[0], x[1], 1), swap(x[2], x[3], 1), swap(x[0], x[2], 2), swap(x[1], x[3], 2);
            if (inside) ptx::store_global(to + 4 * c + threadIdx.x % 4 * 8, x);
        }
        TILEWRIGHT_UNROLL for (int c = whole; c < columns; c += 2) {
            unsigned both = rounded(r, c / 2);
            if (aligned) {
                if (inside && column(c) < width) *(unsigned*)(to + column(c)) = both;
            } else {
                if (inside && column(c) < width) to[column(c)].bits = both & 0xffff;
                if (inside && column(c + 1) < width) to[column(c + 1)].bits = both >> 16;
            }
        }
    }
    TILEWRIGHT_DEVICE void store_row(int r, float factor, Element* to, bool inside) { round_row(r, factor), store_rounded_row(r, to, inside); }
    TILEWRIGHT_DEVICE void store_row(int r, float factor, fp32* to, bool inside) {  // not rounded
        TILEWRIGHT_UNROLL for (int c = 0; c < columns; ++c)
            if (inside && column(c) < width) to[column(c)].value = at(r, c) * factor;
    }
    static TILEWRIGHT_DEVICE void swap(unsigned& a, unsigned& b, int other) {
        bool upper = threadIdx.x & other;
        unsigned received = __shfl_xor_sync(~0u, upper ? a : b, other);
        (upper ? a : b) = received;
    }
};

// The accumulator's layout is that of the left operand: only round and pack.
template <class Scores>
struct Rounded {
    unsigned a[Scores::strips][Scores::columns];
    TILEWRIGHT_DEVICE void assign(Scores& scores) {
        TILEWRIGHT_UNROLL for (int s = 0; s < Scores::strips; ++s) TILEWRIGHT_UNROLL for (int i = 0; i < Scores::columns; ++i) a[s][i] = scores.pair(s, i);
    }
};

// Byte offset of a 16-byte piece of a row in shared memory (resources_nvidia.h).
template <int pieces>
TILEWRIGHT_DEVICE int place(int row, int piece) {
    if constexpr (pieces % 8 == 0) return swizzled<pieces>(row, piece);
    else return (row * sm80_row_pitch(pieces) + piece) * 16;
}

// Blocks draw tiles from a counter, the first of each being its own number. Every block draws until nothing is left, so
// `tiles` are drawn in all and the counter, which wraps there, is zero again; there may be no more blocks than tiles.
TILEWRIGHT_DEVICE int draw_tile(const ForwardParameters& p) { return gridDim.x + atomicInc(p.tiles_dealt, p.tiles - 1); }

}  // namespace nvidia
}  // namespace tilewright::kernel
