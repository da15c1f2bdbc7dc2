// AMD, decoding: a block works on a unit of a line, part after part; its waves share the keys in LDS. Base is the forward's architecture.
#pragma once
#include "../decode_part.h"
#include "amd_forward.h"

namespace tilewright::kernel {

template <class Base>
struct AmdDecode : Base {
    using Config = typename Base::Config;
    using Element = typename Config::Element;
    using Pages = amd::Pages<Config::paged>;
    static constexpr int sharers = 1;
    struct Output : Base::Output {
        static TILEWRIGHT_DEVICE bool leads_row() { return Base::Output::At::leads_row(lane_of_block()); }
    };

    struct Arguments {
        DecodeParameters parameters;
    };
    struct Pipeline;
    struct Values {
        const char* tile;
        int kv;
        const Pipeline& from;
    };
    struct Pipeline : Base::Pipeline {
        using Tiles = typename Base::Pipeline;
        using Tiles::Tiles;
        int next = this->tile.kv_end;
        TILEWRIGHT_DEVICE Values values() { return {Tiles::values(), --next, *this}; }
    };

    static TILEWRIGHT_DEVICE void start_output(Output& output, const typename Base::Rounded& p, const Values& values) {
        Base::start_output(output, p, values.tile);
        if constexpr (Pipeline::rows_differ)
            if (values.from.tile.needs_mask(values.kv)) add_nonfinite(output, values.from, values.kv * Config::block_kv);
    }

    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_part(const Arguments& arguments, char* shared, Body&& body) {
        const DecodeParameters& decode = arguments.parameters;
        int lines = line_count<Config>(decode.forward), block = __builtin_amdgcn_workgroup_id_x();
        Parts<Config> parts(decode, block % lines, block / lines);
        for (Part<Config> part; parts.next(part);) {
            Pages pages{};
            if constexpr (Config::paged) pages = {decode.block_table + part.batch * decode.table_stride, decode.page_shift};
            Pipeline pipeline(decode.forward, part, shared, pages);
            body(part, pipeline);
            amd::barrier();  // all waves are done with the part's tiles
            // Quotients by these would be kept for the next part, and scalar registers spilled.
            TILEWRIGHT_FORGET_SCALAR(parts.line);
            TILEWRIGHT_FORGET_SCALAR(parts.cut.size);
        }
    }

    // Merging: by the wave that arrives last, four columns of a row in a lane at a time.
    static constexpr int lanes_of_block = Base::wave, combined_columns = 4, loads_at_once = 4;
    static TILEWRIGHT_DEVICE int lane_of_block() {
        int lane = Base::lane();
        TILEWRIGHT_FORGET(lane);  // the mask of those that do something would take two scalar registers from part to part
        return lane;
    }
    static TILEWRIGHT_DEVICE bool arrives_last(TILEWRIGHT_GLOBAL unsigned* arrived, int parts) {
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
        unsigned before = 0;
        bool first = lane_of_block() == 0;
        if (first) before = __atomic_fetch_add(arrived, 1u, __ATOMIC_RELAXED);
        if (!Base::any(first && before == unsigned(parts * Config::workers) - 1)) return false;
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
        if (first) *arrived = 0;
        return true;
    }
    template <int n>
    static TILEWRIGHT_DEVICE void load_fresh(float (&x)[n], const TILEWRIGHT_GLOBAL float* from) {
        TILEWRIGHT_UNROLL for (int i = 0; i < n; ++i) x[i] = from[i];
    }
    static TILEWRIGHT_DEVICE void store_columns(Element* to, const float (&x)[4], float factor, int count) {
        unsigned pairs[2] = {amd::pack(Element(), x[0] * factor, x[1] * factor), amd::pack(Element(), x[2] * factor, x[3] * factor)};
        TILEWRIGHT_UNROLL for (int i = 0; i < 4; ++i)
            if (i < count) amd::store_global(to + i, (unsigned short)(pairs[i / 2] >> 16 * (i % 2)));
    }

private:
    // Values that count as zeros in the product although some rows see them: any weight will do. At the edges of a mask alone, so simple.
    static TILEWRIGHT_DEVICE void add_nonfinite(Output& output, const Pipeline& from, int first) {
        const auto& tile = from.tile;
        for (int key = max_of(first, tile.visible_begin(0)); key < min_of(first + Config::block_kv, tile.visible_end(tile.rows() - 1)); ++key) {
            const Element* row;
            if constexpr (Config::paged) row = from.template row<Element>(from.p.value, from.p.value_strides, tile.kv_head, key);
            else row = row_of((const Element*)from.p.value, from.p.value_strides, tile.batch, tile.kv_head, key);
            TILEWRIGHT_UNROLL for (int c = 0; c < Output::columns; ++c) {
                int column = output.column(c);
                float x = column < Config::head_dim_v ? amd::float_at(row + column) : 0;
                if (x - x == 0) continue;
                TILEWRIGHT_UNROLL for (int r = 0; r < Output::rows; ++r) {
                    int of_tile = min_of(output.row(r), tile.rows() - 1);
                    if (key >= tile.visible_begin(of_tile) && key < tile.visible_end(of_tile)) output.at(r, c) = output.at(r, c) + x;
                }
            }
        }
    }
};

}  // namespace tilewright::kernel
