// NVIDIA sm_90a, decoding: the products, of up to 16 rows by warps that share the keys of a tile, or of 64 rows by a warpgroup.
#pragma once
#include "hopper_wgmma.h"
#include "mma_sync.h"
#include "nvidia_decode.h"

namespace tilewright::kernel {
namespace hopper {

// A tile as the copy engine leaves it, one box behind the other: panels of 64 columns (128 bytes), swizzled over 8 rows.
struct BoxedTile {
    unsigned address;
    int shift;  // a box has 2^shift rows
    template <class Config, int columns>
    TILEWRIGHT_DEVICE unsigned at(int row, int piece) const {
        constexpr int panels = sm90_panels(columns);
        int place;
        if constexpr (Config::paged) place = ((row >> shift) * panels + piece / 8 << shift) + (row & (1 << shift) - 1);
        else place = piece / 8 * Config::block_kv + row;
        return address + place * 128 + ((piece ^ row) & 7) * 16;
    }
};

}  // namespace hopper

// Every warp multiplies 16 rows by its own share of the keys.
template <class Config, bool wide>
struct Sm90DecodeProducts : nvidia::Common {
    using Element = typename Config::Element;
    static constexpr int warps = Config::workers, sharers = warps, own_keys = Config::block_kv / sharers;
    static constexpr int head_dim = Config::head_dim, head_dim_v = Config::head_dim_v, query_bytes = 0;
    static_assert(Config::block_q == 16 && Config::block_kv % (16 * warps) == 0 && !Config::overlapped, "warps share the keys by 16");

    static TILEWRIGHT_DEVICE int warp() { return threadIdx.x / 32; }
    struct Scores : nvidia::Accumulator<Element, layouts::MmaSync16x8x16, own_keys, 1, 0> {
        using Base = nvidia::Accumulator<Element, layouts::MmaSync16x8x16, own_keys, 1, 0>;
        static TILEWRIGHT_DEVICE int row(int r) { return Base::Position::row(Base::lane(), r); }
        static TILEWRIGHT_DEVICE int column(int c) { return warp() * own_keys + Base::column(c); }
    };
    struct Output : nvidia::Accumulator<Element, layouts::MmaSync16x8x16, round_up(head_dim_v, 16), 1, 0, head_dim_v> {
        using Base = nvidia::Accumulator<Element, layouts::MmaSync16x8x16, round_up(head_dim_v, 16), 1, 0, head_dim_v>;
        static TILEWRIGHT_DEVICE int row(int r) { return Base::Position::row(Base::lane(), r); }
    };
    using Rounded = nvidia::Rounded<Scores>;
    using Keys = hopper::BoxedTile;
    using ValueTile = hopper::BoxedTile;

    struct Query {  // the left operand, in registers
        unsigned a[round_up(head_dim, 16) / 16][4];
    };
    static TILEWRIGHT_DEVICE Query load_query(const ForwardParameters& p, const Tile<Config>& tile, unsigned) {
        Query query;
        TILEWRIGHT_UNROLL for (int r = 0; r < 2; ++r) {
            int row = Scores::row(r), column = threadIdx.x % 4 * 2;
            bool inside = tile.inside(row);
            const Element* from = row_of((const Element*)p.query, p.query_strides, tile.batch, inside ? tile.head_of(row) : tile.head, inside ? tile.query(row) : 0) + column;
            TILEWRIGHT_UNROLL for (int k = 0; k < round_up(head_dim, 16) / 16; ++k) TILEWRIGHT_UNROLL for (int half = 0; half < 2; ++half) {
                bool exists = inside && k * 16 + half * 8 < head_dim;
                query.a[k][2 * half + r] = exists ? *(const unsigned*)(from + k * 16 + half * 8) : 0;
            }
        }
        return query;
    }
    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, const Query& query, const Keys& keys) {
        int lane = threadIdx.x % 32, first = warp() * own_keys;
        scores.clear();
        TILEWRIGHT_UNROLL for (int t = 0; t < own_keys / 16; ++t) TILEWRIGHT_UNROLL for (int k = 0; k < round_up(head_dim, 16) / 16; ++k) {
            unsigned b[4];
            ptx::load_matrices(b, keys.at<Config, head_dim>(first + t * 16 + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
            ptx::mma(Element(), scores.d[0] + 8 * t, query.a[k], b);
            ptx::mma(Element(), scores.d[0] + 8 * t + 4, query.a[k], b + 2);
        }
    }
    static TILEWRIGHT_DEVICE void multiply_values(Output& output, const Rounded& p, const ValueTile& values) {
        int lane = threadIdx.x % 32, first = warp() * own_keys;
        TILEWRIGHT_UNROLL for (int k = 0; k < own_keys / 16; ++k) TILEWRIGHT_UNROLL for (int t = 0; t < round_up(head_dim_v, 16) / 16; ++t) {
            unsigned b[4];
            ptx::load_matrices_turned(b, values.at<Config, head_dim_v>(first + k * 16 + lane % 16, 2 * t + lane / 16));
            ptx::mma(Element(), output.d[0] + 8 * t, p.a[0] + 4 * k, b);
            ptx::mma(Element(), output.d[0] + 8 * t + 4, p.a[0] + 4 * k, b + 2);
        }
    }
    template <int pending, class Fragment>
    static TILEWRIGHT_DEVICE void finish(Fragment&) {}  // the products are synchronous

    // Those who read the same keys: the warp.
    static constexpr int readers = 32;
    static TILEWRIGHT_DEVICE int reader() { return threadIdx.x % 32; }
    static TILEWRIGHT_DEVICE int first_key() { return warp() * own_keys; }
    static TILEWRIGHT_DEVICE bool readers_meet(bool x) {
        bool any = __any_sync(~0u, x);
        __syncwarp();  // a vote does not order what they wrote
        return any;
    }
    // The copy engine may overwrite what an ldmatrix has yet to read: the arrival is moved up to right behind it, and does not wait for it.
    static TILEWRIGHT_DEVICE void settle_reads() { ptx::fence_async(), __syncwarp(); }

    static TILEWRIGHT_DEVICE Keys keys_at(unsigned address, int shift) { return {address, shift}; }
    static TILEWRIGHT_DEVICE ValueTile values_at(unsigned address, int shift) { return {address, shift}; }
    static TILEWRIGHT_DEVICE unsigned value_place(unsigned address, int shift, int key, int piece) { return values_at(address, shift).template at<Config, head_dim_v>(key, piece); }
};

// A warpgroup multiplies 64 rows by all keys. It wants panels that are whole: boxes lie within them.
template <class Config>
struct Sm90DecodeProducts<Config, true> : hopper::Common {
    using Element = typename Config::Element;
    static constexpr int warps = 4, sharers = 1, own_keys = Config::block_kv, head_dim = Config::head_dim, head_dim_v = Config::head_dim_v;
    static constexpr int query_bytes = sm90_tile_bytes(64, head_dim);
    static_assert(Config::block_q == 64 && Config::workers == 1);

    using Scores = nvidia::Accumulator<Element, layouts::Wgmma64x8x16, Config::block_kv, 1, 0>;
    using Output = nvidia::Accumulator<Element, layouts::Wgmma64x8x16, head_dim_v, 1, 0>;
    using Rounded = nvidia::Rounded<Scores>;
    using Keys = unsigned;
    using ValueTile = unsigned;
    using Query = unsigned;

    static TILEWRIGHT_DEVICE Query load_query(const ForwardParameters& p, const Tile<Config>& tile, unsigned to) {
        constexpr int pieces = sm90_panels(head_dim) * 8;
        readers_meet(false);  // the last part's has been read
        TILEWRIGHT_UNROLL for (int first = 0; first < 64 * pieces; first += 8 * 128) {  // eight loads on their way at once
            uint4 x[8];
            TILEWRIGHT_UNROLL for (int n = 0; n < 8; ++n) {
                int i = first + n * 128 + threadIdx.x, row = i / pieces, piece = i % pieces;
                x[n] = uint4{};
                if (i < 64 * pieces && tile.inside(row) && piece * 8 < head_dim)
                    x[n] = ((const uint4*)row_of((const Element*)p.query, p.query_strides, tile.batch, tile.head_of(row), tile.query(row)))[piece];
            }
            TILEWRIGHT_UNROLL for (int n = 0; n < 8; ++n)
                if (int i = first + n * 128 + threadIdx.x; i < 64 * pieces) ptx::store_shared(to + place(i / pieces, i % pieces, 64), x[n]);
        }
        ptx::fence_async();
        readers_meet(false);
        return hopper::operand(to, 64);
    }
    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, unsigned query, unsigned keys) {
        hopper::start_scores<round_up(head_dim, 16), 64, Config::block_kv>(scores, query, keys);
    }
    static TILEWRIGHT_DEVICE void multiply_values(Output& output, const Rounded& p, unsigned values) { hopper::start_output<Config::block_kv>(output, p, values); }

    static constexpr int readers = 128;
    static TILEWRIGHT_DEVICE int reader() { return threadIdx.x; }
    static TILEWRIGHT_DEVICE int first_key() { return 0; }
    static TILEWRIGHT_DEVICE bool readers_meet(bool x) { return nvidia::meet<1, 128>(x); }
    static TILEWRIGHT_DEVICE void settle_reads() {}  // the products were waited for

    static TILEWRIGHT_DEVICE Keys keys_at(unsigned address, int) { return hopper::operand(address, Config::block_kv); }
    static TILEWRIGHT_DEVICE ValueTile values_at(unsigned address, int) { return hopper::operand(address, Config::block_kv); }
    static TILEWRIGHT_DEVICE unsigned place(int row, int piece, int rows) { return piece / 8 * rows * 128 + row * 128 + ((piece ^ row) & 7) * 16; }
    static TILEWRIGHT_DEVICE unsigned value_place(unsigned address, int, int key, int piece) { return address + place(key, piece, Config::block_kv); }
};

}  // namespace tilewright::kernel
