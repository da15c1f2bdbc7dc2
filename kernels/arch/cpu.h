// The CPU: one thread owns a whole tile, a vector of columns plays the part of a GPU's lanes, scratch that of shared memory.
#pragma once
#include "../resources_cpu.h"
#include "cpu_product.h"

namespace tilewright::kernel {
namespace cpu {

struct Lane {
    using Value = Vector;
    static constexpr bool stores_through_query = false, halves = false, votes_by_lane = false;
    static constexpr int probability_lift = 0;
    static TILEWRIGHT_DEVICE Vector broadcast(float x) { return cpu::broadcast(x); }
    static TILEWRIGHT_DEVICE Vector max(Vector running, Vector x) { return x > running ? x : running; }  // drops NaN
    static TILEWRIGHT_DEVICE float reciprocal(float x) { return 1.0f / x; }
    static TILEWRIGHT_DEVICE Vector min(Vector a, Vector b) { return b < a ? b : a; }
    static TILEWRIGHT_DEVICE Vector select(Index first, Vector a, Vector b) { return first ? a : b; }
    static TILEWRIGHT_DEVICE Vector to_float(Index x) { return __builtin_convertvector(x, Vector); }
    static TILEWRIGHT_DEVICE Index distance(Index a, int b) { return a < b ? b - a : a - b; }
    template <bool has_begin, class Fragment>
    static TILEWRIGHT_DEVICE void hide_row(Fragment& scores, int r, int begin, int end) { hide_columns<Lane, has_begin>(scores, r, begin, end); }
    static TILEWRIGHT_DEVICE Vector exp2(Vector x) { return cpu::exp2(x); }
    static TILEWRIGHT_DEVICE Vector exp2_at_most_one(Vector x) { return exp2(min(x, broadcast(0.0f))); }
    static TILEWRIGHT_DEVICE float exp2(float x) { return cpu::exp2(cpu::broadcast(x))[0]; }
    static TILEWRIGHT_DEVICE float log2(float x) { return __builtin_log2f(x); }
    static TILEWRIGHT_DEVICE bool any(bool x) { return x; }
    static TILEWRIGHT_DEVICE float row_max(Vector x) { return reduce(x, [](Vector a, Vector b) { return a > b ? a : b; }); }
    static TILEWRIGHT_DEVICE float row_sum(Vector x) { return reduce(x, [](Vector a, Vector b) { return a + b; }); }
    template <class Element>
    static TILEWRIGHT_DEVICE Vector gather(const Element* from, long long stride, Index index, int count) {
        if (stride == 1 && index[0] + lanes <= count) return load(from, index[0], count);
        Vector x;
        for (int i = 0; i < lanes; ++i) x[i] = cpu::to_float(from[min_of(index[i], count - 1) * stride]);
        return x;
    }
    static TILEWRIGHT_DEVICE void scatter(float* to, Index index, int count, Vector x) {
        if (index[0] + lanes <= count) *(Vector*)(to + index[0]) = x;
        else
            for (int i = 0; index[0] + i < count; ++i) to[index[0] + i] = x[i];
    }
};

// A whole tile in memory, M rows of N columns, of which the first `stored` go to the output.
template <class Element, int M, int N, int stored>
struct Accumulator {
    static constexpr int rows = M, columns = N / lanes;
    alignas(64) float d[M * N];

    TILEWRIGHT_DEVICE Vector& at(int r, int c) { return *(Vector*)(d + r * N + c * lanes); }
    static TILEWRIGHT_DEVICE int row(int r) { return r; }
    static TILEWRIGHT_DEVICE Index column(int c) { return lane_numbers(AllLanes()) + c * lanes; }
    static TILEWRIGHT_DEVICE bool leads_row() { return true; }
    TILEWRIGHT_DEVICE void clear() {
        for (float& x : d) x = 0;
    }
    template <class To>
    TILEWRIGHT_DEVICE void store_row(int r, float factor, To* to, bool inside) {
        if (inside)
            for (int c = 0; c < stored; ++c) to[c] = rounded(To(), d[r * N + c] * factor);
    }
};

// Probabilities as left operand: where they are, a copy if the next scores come before the product, or rounded to pairs.
template <class Scores>
struct InPlace {
    const float* left;
    TILEWRIGHT_DEVICE void assign(const Scores& scores) { left = scores.d; }
};
template <class Scores>
struct Copied {
    alignas(64) float left[Scores::rows * Scores::columns * lanes];
    TILEWRIGHT_DEVICE void assign(Scores& scores) {
        for (int i = 0; i < Scores::rows * Scores::columns; ++i) ((Vector*)left)[i] = ((Vector*)scores.d)[i];
    }
};
template <class Scores>
struct Pairs {
    alignas(64) unsigned left[Scores::rows * Scores::columns * lanes / 2];
    TILEWRIGHT_DEVICE void assign(Scores& scores) {
        for (int i = 0; i < Scores::rows * Scores::columns / 2; ++i)
            *(Vector*)(left + i * lanes) = round_pairs(((Vector*)scores.d)[2 * i], ((Vector*)scores.d)[2 * i + 1]);
    }
};

template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;
template <bool first, class A, class B> struct Choose { using type = A; };
template <class A, class B> struct Choose<false, A, B> { using type = B; };

}  // namespace cpu

template <class Config_>
struct Cpu : cpu::Lane {
    using Config = Config_;
    using Element = typename Config::Element;
    static constexpr int block_q = Config::block_q, block_kv = Config::block_kv;
    static constexpr bool dot16 = Config::dot16 && cpu::same<Element, bf16>;
    static constexpr CpuScratch scratch = cpu_scratch(Config::head_dim, Config::head_dim_v, block_q, block_kv, cpu::lanes, dot16);
    static constexpr int depth = scratch.depth, width = scratch.width, packing = dot16 ? 2 : 1;
    static_assert(block_kv % (packing * cpu::lanes) == 0, "block_kv must be a multiple of the vector width");

    struct Arguments {
        ParametersOf<Config> parameters;
    };
    using Tile = kernel::Tile<Config>;
    using Left = typename cpu::Choose<dot16, unsigned, float>::type;
    using Scores = cpu::Accumulator<Element, block_q, block_kv, block_kv>;
    using Output = cpu::Accumulator<Element, block_q, width, Config::head_dim_v>;
    using Floats = typename cpu::Choose<Config::overlapped, cpu::Copied<Scores>, cpu::InPlace<Scores>>::type;
    using Rounded = typename cpu::Choose<dot16, cpu::Pairs<Scores>, Floats>::type;

    struct Values {
        float* right;
        const Tile& tile;
        int first_key;
        bool finite;  // otherwise 0 * infinity must be kept from rows that do not see the value
    };
    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, const Left* query, const float* keys) {
        cpu::multiply<block_q, block_kv, depth / packing, false>(scores.d, query, keys);
    }
    static TILEWRIGHT_DEVICE void start_output(Output& output, const Rounded& p, const Values& values) {
        bool hides = Config::bias || values.tile.needs_mask(values.first_key / block_kv);
        if (values.finite || !hides) cpu::multiply<block_q, width, block_kv / packing, true>(output.d, p.left, values.right);
        else multiply_visible(output, p, values);
    }
    template <int pending, class Fragment> static TILEWRIGHT_DEVICE void finish(Fragment&) {}

    // Row by row, with the values that the row does not see set to zero. Rare, so simple; the same sums in the same order.
    static __attribute__((noinline)) void multiply_visible(Output& output, const Rounded& p, const Values& values) {
        constexpr int steps = block_kv / packing, bits = 32 / packing;
        alignas(64) float visible[steps * width];
        for (int r = 0; r < block_q; ++r) {
            int begin = values.tile.visible_begin(r) - values.first_key, end = values.tile.visible_end(r) - values.first_key;
            const Left* left = p.left + r * steps;
            for (int k = 0; k < steps; ++k) {
                unsigned kept = 0;  // bits of the values whose keys the row sees; a bias of -infinity shows as no probability
                for (int i = 0; i < packing; ++i) {
                    int key = packing * k + i;
                    unsigned of_one = (dot16 ? 0xffffu : ~0u) << i * bits;
                    if (key >= begin && key < end && (!Config::bias || (__builtin_bit_cast(unsigned, left[k]) & of_one))) kept |= of_one;
                }
                for (int c = 0; c < width; ++c)
                    visible[k * width + c] = __builtin_bit_cast(float, __builtin_bit_cast(unsigned, values.right[k * width + c]) & kept);
            }
            cpu::multiply<1, width, steps, true>(output.d + r * width, left, visible);
        }
    }

    // Copies tiles into scratch as the products want them, when they are asked for.
    struct Pipeline {
        const ForwardParameters& p;
        char* scratch_bytes;
        Tile tile;
        int key_tile, value_tile;

        TILEWRIGHT_DEVICE float* key_space() const { return (float*)(scratch_bytes + scratch.query_bytes); }
        TILEWRIGHT_DEVICE float* value_space() const { return (float*)(scratch_bytes + scratch.query_bytes + scratch.key_bytes); }
        TILEWRIGHT_DEVICE const Element* row(const void* base, const Strides& strides, int key) const {
            return key < tile.seq_kv ? row_of((const Element*)base, strides, tile.key_batch(), tile.kv_head, key) : nullptr;
        }
        static TILEWRIGHT_DEVICE cpu::Vector load(const Element* row, int c, int count) {
            if constexpr (dot16) return cpu::load_pairs(row, c, count);
            else return cpu::load(row, c, count);
        }
        const Left* query() {  // [block_q][depth]
            Left* to = (Left*)scratch_bytes;
            for (int r = 0; r < block_q; ++r) {
                const Element* from = tile.inside(r) ? row_of((const Element*)p.query, p.query_strides, tile.batch, tile.head_of(r), tile.query(r)) : nullptr;
                int c = 0;
                for (; c + packing * cpu::lanes <= Config::head_dim; c += packing * cpu::lanes)
                    *(cpu::Vector*)(to + (r * depth + c) / packing) = load(from, c, Config::head_dim);
                for (; c < depth; c += packing) to[(r * depth + c) / packing] = __builtin_bit_cast(Left, load(from, c, Config::head_dim)[0]);
            }
            return to;
        }
        // [depth][block_kv]: the product's inner loop runs along keys.
        const float* keys() {
            constexpr int lanes = cpu::lanes;
            float* to = key_space();
            for (int r = 0; r < block_kv; r += lanes)
                for (int c = 0; c < depth; c += packing * lanes) {
                    cpu::Vector x[lanes];
                    TILEWRIGHT_REGISTERS for (int i = 0; i < lanes; ++i) x[i] = load(row(p.key, p.key_strides, key_tile * block_kv + r + i), c, Config::head_dim);
                    cpu::turn(x);
                    int count = min_of(lanes, (depth - c) / packing);
                    if (count == lanes) {
                        TILEWRIGHT_REGISTERS for (int i = 0; i < lanes; ++i) *(cpu::Vector*)(to + (c / packing + i) * block_kv + r) = x[i];
                    } else {
                        for (int i = 0; i < count; ++i) *(cpu::Vector*)(to + (c / packing + i) * block_kv + r) = x[i];
                    }
                }
            return to;
        }
        // [block_kv][width], or with pairs [block_kv / 2][width][2].
        Values values() {
            float* to = value_space();
            cpu::Vector zeros{};  // 0 * x is NaN where x is not finite
            for (int r = 0; r < block_kv; r += packing)
                for (int c = 0; c < width; c += cpu::lanes) {
                    cpu::Vector x = cpu::load(row(p.value, p.value_strides, value_tile * block_kv + r), c, Config::head_dim_v);
                    zeros += 0 * x;
                    if constexpr (dot16) {
                        cpu::Vector y = cpu::load(row(p.value, p.value_strides, value_tile * block_kv + r + 1), c, Config::head_dim_v);
                        zeros += 0 * y;
                        x = __builtin_bit_cast(cpu::Vector, __builtin_bit_cast(cpu::Bits, x) >> 16 | (__builtin_bit_cast(cpu::Bits, y) & 0xffff0000u));
                    }
                    *(cpu::Vector*)(to + r / packing * width + c) = x;
                }
            return {to, tile, value_tile * block_kv, cpu::Lane::row_sum(zeros) == 0};
        }
        void release_query() {}
        void release_keys() { --key_tile; }
        void release_values() { --value_tile; }
        void take_turn() {}
        void pass_turn() {}
    };

    // Threads draw tiles until none is left.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_tile(const Arguments& arguments, char* scratch_bytes, Body&& body) {
        const ForwardParameters& p = forward_of(arguments.parameters);
        for (int i; (i = __atomic_fetch_add(p.tiles_dealt, 1u, __ATOMIC_RELAXED)) < p.tiles;) {
            Tile tile = tile_at<Config>(arguments.parameters, i);
            Pipeline pipeline{p, scratch_bytes, tile, tile.kv_end - 1, tile.kv_end - 1};
            body(tile, pipeline);
        }
    }
};

}  // namespace tilewright::kernel
