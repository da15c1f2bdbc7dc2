// The CPU, decoding: so few rows share a key that copying it costs more than it saves, so keys and values are read where they lie.
#pragma once
#include "../decode_part.h"
#include "cpu.h"

namespace tilewright::kernel {
namespace cpu {

// The sum of each vector's lanes, that of x[i] in lane i of x[0]: every step halves the vectors and the lanes that are yet to be added.
template <int step = lanes / 2>
TILEWRIGHT_DEVICE void add_up(Vector (&x)[lanes]) {
    TILEWRIGHT_REGISTERS for (int i = 0; i < step; ++i) turn_pair<step>(x[i], x[i + step], AllLanes()), x[i] += x[i + step];
    if constexpr (step > 1) add_up<step / 2>(x);
}

// Of a row of `count` elements, the vector at `column`, a constant after unrolling: zeros past the end, which is never read past.
template <int count, class Element>
TILEWRIGHT_DEVICE Vector load_part(const Element* row, int column) {
    if constexpr (count % lanes == 0) return load_vector(row + column);
    else return load(row, column, count);
}

// A tile's rows of keys or values, wherever they are: those behind the last are the last again. And the rows that come next:
// they are fetched while these are worked on, because the processor cannot guess pages, nor strides between rows.
template <class Element, int block_kv>
struct Rows {
    const Element* const (&at)[block_kv];
    const Element* const (&next)[block_kv];
};
// To the second level: the first has too few requests in flight to keep the memory busy.
template <int begin, int end>
TILEWRIGHT_DEVICE void fetch(const void* row) {
    TILEWRIGHT_REGISTERS for (int i = begin; i < end; i += 64) __builtin_prefetch((const char*)row + i, 0, 2);
}

// Scores of `tall` queries with all keys of a tile, as many keys at once as fill a vector with sums, each the sum of a vector.
template <int tall, int block_kv, int head_dim, int next_bytes, class Element>
TILEWRIGHT_DEVICE void multiply_keys(float* scores, const float* query, const Rows<Element, block_kv>& keys) {
    constexpr int depth = round_up(head_dim, lanes), together = lanes / tall;
    for (int key = 0; key < block_kv; key += together) {
        TILEWRIGHT_REGISTERS for (int k = 0; k < together; ++k) fetch<0, next_bytes>(keys.next[key + k]);
        Vector sums[lanes] = {};
        TILEWRIGHT_REGISTERS for (int c = 0; c < depth; c += lanes) {
            Vector left[tall];
            TILEWRIGHT_REGISTERS for (int m = 0; m < tall; ++m) left[m] = *(const Vector*)(query + m * depth + c);
            TILEWRIGHT_REGISTERS for (int k = 0; k < together; ++k) {
                Vector right = load_part<head_dim>(keys.at[key + k], c);
                TILEWRIGHT_REGISTERS for (int m = 0; m < tall; ++m) sums[m * together + k] += left[m] * right;
            }
        }
        add_up(sums);
        TILEWRIGHT_REGISTERS for (int m = 0; m < tall; ++m)
            TILEWRIGHT_REGISTERS for (int k = 0; k < together; ++k) scores[m * block_kv + key + k] = sums[0][m * together + k];
    }
}

// output[tall][N], `wide` vectors from `column` on, += p[tall][block_kv] times the values [begin, end) of a tile. With `skips` those
// whose probability is zero are left out.
template <int tall, int wide, int N, int head_dim_v, bool skips, int next_begin, int next_end, class Element, int block_kv>
TILEWRIGHT_DEVICE void multiply_values(float* output, const float* p, const Rows<Element, block_kv>& values, int column, int begin, int end) {
    Vector block[tall][wide];
    TILEWRIGHT_REGISTERS for (int m = 0; m < tall; ++m)
        TILEWRIGHT_REGISTERS for (int j = 0; j < wide; ++j) block[m][j] = *(Vector*)(output + m * N + column + j * lanes);
    for (int key = begin; key < end; ++key) {
        fetch<next_begin, next_end>(values.next[key]);
        if (skips && p[key] == 0) continue;
        Vector right[wide];
        TILEWRIGHT_REGISTERS for (int j = 0; j < wide; ++j) right[j] = load_part<head_dim_v>(values.at[key], column + j * lanes);
        TILEWRIGHT_REGISTERS for (int m = 0; m < tall; ++m)
            TILEWRIGHT_REGISTERS for (int j = 0; j < wide; ++j) block[m][j] += p[m * block_kv + key] * right[j];
    }
    TILEWRIGHT_REGISTERS for (int m = 0; m < tall; ++m)
        TILEWRIGHT_REGISTERS for (int j = 0; j < wide; ++j) *(Vector*)(output + m * N + column + j * lanes) = block[m][j];
}
template <int tall, int N, int head_dim_v, bool skips, int next_bytes, class Element, int block_kv>
TILEWRIGHT_DEVICE void multiply_values(float* output, const float* p, const Rows<Element, block_kv>& values, int begin, int end) {
    constexpr int wide = lanes == 16 ? 4 : 2, vectors = N / lanes, tail = vectors % wide;
    // The first two walks over the values share what is to be fetched: in a walk that fetches nothing the memory rests.
    constexpr int half = vectors > wide ? (next_bytes / 64 + 1) / 2 * 64 : next_bytes;
    if constexpr (tail > 0) multiply_values<tall, tail, N, head_dim_v, skips, 0, half>(output, p, values, 0, begin, end);
    else multiply_values<tall, wide, N, head_dim_v, skips, 0, half>(output, p, values, 0, begin, end);
    constexpr int second = (tail > 0 ? tail : wide) * lanes;
    if constexpr (second < N) multiply_values<tall, wide, N, head_dim_v, skips, half, next_bytes>(output, p, values, second, begin, end);
    for (int column = second + wide * lanes; column < N; column += wide * lanes)
        multiply_values<tall, wide, N, head_dim_v, skips, 0, 0>(output, p, values, column, begin, end);
}

}  // namespace cpu

template <class Config_>
struct CpuDecode : cpu::Lane {
    using Config = Config_;
    using Element = typename Config::Element;
    static constexpr int block_q = Config::block_q, block_kv = Config::block_kv;
    static constexpr int depth = round_up(Config::head_dim, cpu::lanes), width = round_up(Config::head_dim_v, cpu::lanes);
    static constexpr int key_bytes = Config::head_dim * sizeof(Element), value_bytes = Config::head_dim_v * sizeof(Element);
    static constexpr int tall = min_of(4, block_q);  // rows that are worked on together
    static_assert(cpu::lanes % tall == 0 && block_q % tall == 0, "block_q must be 1, 2 or a multiple of 4");
    static_assert(block_kv % cpu::lanes == 0, "block_kv must be a multiple of the vector width");
    static_assert(!Config::overlapped && !Config::dot16, "nothing to overlap with, and no pairs to multiply");

    struct Arguments {
        DecodeParameters parameters;
    };
    using Tile = kernel::Tile<Config>;
    using Scores = cpu::Accumulator<Element, block_q, block_kv, block_kv>;
    using Output = cpu::Accumulator<Element, block_q, width, Config::head_dim_v>;
    using Rounded = cpu::InPlace<Scores>;
    using Rows = cpu::Rows<Element, block_kv>;
    struct Values {
        Rows rows;
        const Tile& tile;
        int kv;
    };

    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, const float* query, const Rows& keys) {
        cpu::multiply_keys<tall, block_kv, Config::head_dim, value_bytes>(scores.d, query, keys);
        for (int m = tall; m < block_q; m += tall)
            cpu::multiply_keys<tall, block_kv, Config::head_dim, 0>(scores.d + m * block_kv, query + m * depth, keys);
    }
    // Where a mask hides something each row takes what it sees, because what it does not see may be no number.
    static TILEWRIGHT_DEVICE void start_output(Output& output, const Rounded& p, const Values& values) {
        if (Config::bias || values.tile.needs_mask(values.kv)) {
            int first_key = values.kv * block_kv;
            for (int m = 0; m < block_q; ++m) {
                int begin = max_of(0, values.tile.visible_begin(m) - first_key), end = min_of(block_kv, values.tile.visible_end(m) - first_key);
                cpu::multiply_values<1, width, Config::head_dim_v, Config::bias, 0>(output.d + m * width, p.left + m * block_kv, values.rows, begin, end);
            }
        } else {
            cpu::multiply_values<tall, width, Config::head_dim_v, false, key_bytes>(output.d, p.left, values.rows, 0, block_kv);
            for (int m = tall; m < block_q; m += tall)
                cpu::multiply_values<tall, width, Config::head_dim_v, false, 0>(output.d + m * width, p.left + m * block_kv, values.rows, 0, block_kv);
        }
    }
    template <int pending, class Fragment> static TILEWRIGHT_DEVICE void finish(Fragment&) {}

    struct Pipeline {
        const DecodeParameters& decode;
        float* scratch;
        Tile tile;
        int key_tile, value_tile;
        const Element *key_rows[block_kv], *value_rows[block_kv];

        const float* query() {  // [block_q][depth]
            const ForwardParameters& p = decode.forward;
            for (int r = 0; r < block_q; ++r) {
                const Element* from = tile.inside(r) ? row_of((const Element*)p.query, p.query_strides, tile.batch, tile.head_of(r), tile.query(r)) : nullptr;
                for (int c = 0; c < depth; c += cpu::lanes) *(cpu::Vector*)(scratch + r * depth + c) = cpu::load(from, c, Config::head_dim);
            }
            return scratch;
        }
        Rows keys() {
            if (key_tile == tile.kv_end - 1) find(key_rows, decode.forward.key, decode.forward.key_strides, key_tile);
            find(value_rows, decode.forward.value, decode.forward.value_strides, key_tile);
            return {key_rows, value_rows};
        }
        Values values() {
            if (value_tile > tile.kv_begin) find(key_rows, decode.forward.key, decode.forward.key_strides, value_tile - 1);
            return {{value_rows, key_rows}, tile, value_tile};
        }
        TILEWRIGHT_DEVICE void find(const Element* (&rows)[block_kv], const void* base, const Strides& strides, int kv) {
            for (int r = 0; r < block_kv; ++r) {
                int key = min_of(kv * block_kv + r, tile.seq_kv - 1);
                if constexpr (Config::paged) {
                    int page = decode.block_table[tile.batch * decode.table_stride + (key >> decode.page_shift)];
                    rows[r] = row_of((const Element*)base, strides, page, tile.kv_head, key & ((1 << decode.page_shift) - 1));
                } else {
                    rows[r] = row_of((const Element*)base, strides, tile.batch, tile.kv_head, key);
                }
            }
        }
        void release_query() {}
        void release_keys() { --key_tile; }
        void release_values() { --value_tile; }
        void take_turn() {}
        void pass_turn() {}
    };

    // Threads draw units until none is left.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_part(const Arguments& arguments, char* scratch, Body&& body) {
        const DecodeParameters& decode = arguments.parameters;
        int lines = line_count<Config>(decode.forward), all = lines * decode.units;
        for (int i; (i = __atomic_fetch_add(decode.forward.tiles_dealt, 1u, __ATOMIC_RELAXED)) < all;) {
            Parts<Config> parts(decode, i % lines, i / lines);
            for (Part<Config> part; parts.next(part);) {
                Pipeline pipeline{decode, (float*)scratch, part, part.kv_end - 1, part.kv_end - 1};
                body(part, pipeline);
            }
        }
    }

    // Merging: the thread does it all, a whole row at once.
    static constexpr int sharers = 1, lanes_of_block = 1, loads_at_once = 1, combined_columns = partial_columns(Config::head_dim_v);
    static TILEWRIGHT_DEVICE int lane_of_block() { return 0; }
    static TILEWRIGHT_DEVICE bool arrives_last(unsigned* arrived, int parts) {
        if (__atomic_add_fetch(arrived, 1u, __ATOMIC_ACQ_REL) != (unsigned)parts) return false;
        *arrived = 0;
        return true;
    }
    template <int n>
    static TILEWRIGHT_DEVICE void load_fresh(float (&x)[n], const float* from) {
        for (int i = 0; i < n; ++i) x[i] = from[i];
    }
    template <int n>
    static TILEWRIGHT_DEVICE void store_columns(Element* to, const float (&x)[n], float factor, int count) {
        for (int i = 0; i < n && i < count; ++i) to[i] = cpu::rounded(Element(), x[i] * factor);
    }
};

}  // namespace tilewright::kernel
