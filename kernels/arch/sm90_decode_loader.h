// NVIDIA sm_90a, decoding: where things are in shared memory, and the warp that loads keys and values, dense or in pages.
#pragma once
#include "sm90_decode_products.h"

namespace tilewright::kernel {
namespace hopper {

// Rows of a box: those of a page, or of a tile where that has fewer.
template <class Config>
TILEWRIGHT_DEVICE int box_shift(const DecodeParameters& decode) {
    return Config::paged ? min_of(decode.page_shift, log2_of(Config::block_kv)) : 0;
}

template <class Config>
struct DecodeShared {
    static constexpr NvidiaTile shape{Config::head_dim, Config::head_dim_v, 2, Config::block_q, Config::block_kv, Config::stages, Config::workers, Config::blocks, Config::overlapped, false};
    static constexpr int stages = Config::stages, key_bytes = sm90_tile_bytes(Config::block_kv, Config::head_dim), value_bytes = sm90_tile_bytes(Config::block_kv, Config::head_dim_v);
    static constexpr int tile_bytes = sm90_decode_tile_bytes(shape), query_bytes = tile_bytes - stages * (key_bytes + value_bytes);
    static constexpr int sum_pitch = sm90_decode_sum_pitch(Config::head_dim_v);
    unsigned base;
    float* sums;
    TILEWRIGHT_DEVICE explicit DecodeShared(char* shared) : base((ptx::shared_address(shared) + sm90_alignment - 1) & ~(sm90_alignment - 1u)) {
        sums = (float*)(shared + (base - ptx::shared_address(shared)) + tile_bytes);
    }
    TILEWRIGHT_DEVICE unsigned query() const { return base; }
    TILEWRIGHT_DEVICE unsigned keys(int stage) const { return base + query_bytes + stage * key_bytes; }
    TILEWRIGHT_DEVICE unsigned values(int stage) const { return base + query_bytes + stages * key_bytes + stage * value_bytes; }
    TILEWRIGHT_DEVICE unsigned barrier(int i) const { return base + tile_bytes + sm90_decode_sum_bytes(shape) + 8 * i; }
    TILEWRIGHT_DEVICE unsigned keys_full(int stage) const { return barrier(stage); }
    TILEWRIGHT_DEVICE unsigned keys_free(int stage) const { return barrier(stages + stage); }
    TILEWRIGHT_DEVICE unsigned values_full(int stage) const { return barrier(2 * stages + stage); }
    TILEWRIGHT_DEVICE unsigned values_free(int stage) const { return barrier(3 * stages + stage); }
    TILEWRIGHT_DEVICE void init_barriers(int warps) const {
        for (int stage = 0; stage < stages; ++stage) {
            ptx::barrier_init(keys_full(stage), 1), ptx::barrier_init(values_full(stage), 1);
            ptx::barrier_init(keys_free(stage), releases(warps)), ptx::barrier_init(values_free(stage), releases(warps));
        }
        ptx::barrier_init_done();
    }
};

// A whole warp.
template <class Config>
struct DecodeLoader {
    using Shared = DecodeShared<Config>;
    // A warpgroup wants panels of a whole tile: then boxes of pages are copied panel by panel.
    static constexpr bool whole_panels = sm90_decode_is_wide(Shared::shape) && Config::paged;
    template <int columns>
    static constexpr bool one_by_one = columns % panel_columns != 0 || whole_panels;

    const Sm90DecodeArguments& arguments;
    Shared shared;
    Ring<Config::stages> ring;

    TILEWRIGHT_DEVICE void load(const Part<Config>& part) {
        Pages pages(arguments.parameters, part);
        _Pragma("unroll 1") for (int kv = part.kv_end - 1; kv >= part.kv_begin; --kv) {
            Boxes boxes = pages.boxes(kv);
            copy<Config::head_dim>(boxes, shared.keys(ring.stage), &arguments.key, shared.keys_full(ring.stage), shared.keys_free(ring.stage), part.kv_head);
            copy<Config::head_dim_v>(boxes, shared.values(ring.stage), &arguments.value, shared.values_full(ring.stage), shared.values_free(ring.stage), part.kv_head);
            ring.advance();
        }
    }

    // Asks for the first keys and values of the unit, from `part` on, before anything that earlier kernels write may be relied upon: lengths and tables may
    // change yet, and then these were not the right ones, but that is all.
    static TILEWRIGHT_DEVICE void ask_early(const Sm90DecodeArguments& arguments, Parts<Config, nvidia::WarpLanes> parts, Part<Config> part) {
        const DecodeParameters& decode = arguments.parameters;
        if (Config::paged && decode.pages == 0) return;  // a page that does not exist must not be asked for
        int left = Config::early_kb * 1024;
        for (bool more = true; more && left > 0; more = parts.next(part)) {
            Pages pages(decode, part);
            for (int kv = part.kv_end - 1; kv >= part.kv_begin && left > 0; --kv, left -= Shared::key_bytes + Shared::value_bytes) {
                Boxes boxes = pages.boxes(kv);
                if (boxes.own < 0) continue;
                ask<Config::head_dim>(&arguments.key, boxes, part.kv_head);
                ask<Config::head_dim_v>(&arguments.value, boxes, part.kv_head);
            }
        }
    }

private:
    // What is to be copied for a tile: `count` boxes, of which a lane does the one with the number `own`, if that is not negative.
    struct Boxes {
        int count, own, row, batch, shift;
    };
    // Where the boxes of a sequence's tiles are; every lane holds one of 32 entries of the table, and one of those that come next.
    struct Pages {
        const DecodeParameters& decode;
        const Part<Config>& part;
        int shift, per_tile, run, page, page_before;
        TILEWRIGHT_DEVICE Pages(const DecodeParameters& of, const Part<Config>& of_part) : decode(of), part(of_part), shift(box_shift<Config>(of)) {
            if constexpr (Config::paged) {
                per_tile = Config::block_kv >> shift;
                run = (part.kv_end - 1) * per_tile / 32;
                page = entry(run), page_before = entry(run - 1);
            }
        }
        TILEWRIGHT_DEVICE int entry(int of_run) const {
            int first_key = (of_run * 32 + (int)threadIdx.x % 32) << shift, of_table = first_key >> decode.page_shift;
            bool exists = first_key >= 0 && first_key < part.seq_kv && of_table < decode.table_stride;  // a length asked for early may be any
            return exists ? __ldcg(decode.block_table + part.batch * decode.table_stride + of_table) : 0;
        }
        TILEWRIGHT_DEVICE Boxes boxes(int kv) {
            int lane = threadIdx.x % 32, first = kv * Config::block_kv;
            if constexpr (!Config::paged) return {1, lane == 0 ? 0 : -1, first, part.batch, 0};
            int box = kv * per_tile;
            if (box / 32 != run) --run, page = page_before, page_before = entry(run - 1);
            int own_page = __shfl_sync(~0u, page, (box + lane % per_tile) % 32), count = min_of(per_tile, (part.seq_kv - first + (1 << shift) - 1) >> shift);
            return {count, lane < count ? lane : -1, (first + (lane << shift)) & ((1 << decode.page_shift) - 1), own_page, shift};
        }
    };

    template <int columns>
    static TILEWRIGHT_DEVICE void copy(const Boxes& boxes, unsigned to, const TensorMap* map, unsigned full, unsigned free_again, int kv_head, int parity) {
        constexpr int panels = sm90_panels(columns);
        int box_rows = Config::paged ? 1 << boxes.shift : Config::block_kv;
        ptx::barrier_wait(free_again, parity);
        if (threadIdx.x % 32 == 0) ptx::barrier_expect(full, boxes.count * box_rows * panels * 128);
        __syncwarp();
        if (boxes.own < 0) return;
        to += boxes.own * box_rows * (whole_panels ? 128 : panels * 128);
        if constexpr (one_by_one<columns>) {
            int panel_bytes = (whole_panels ? Config::block_kv : box_rows) * 128;
            TILEWRIGHT_UNROLL for (int panel = 0; panel < panels; ++panel)
                ptx::copy_panel_once(to + panel * panel_bytes, map, full, panel * panel_columns, boxes.row, kv_head, boxes.batch);
        } else {
            ptx::copy_panels_once(to, map, full, boxes.row, kv_head, boxes.batch);
        }
    }
    template <int columns>
    TILEWRIGHT_DEVICE void copy(const Boxes& boxes, unsigned to, const TensorMap* map, unsigned full, unsigned free_again, int kv_head) const {
        copy<columns>(boxes, to, map, full, free_again, kv_head, ring.parity ^ 1);
    }
    template <int columns>
    static TILEWRIGHT_DEVICE void ask(const TensorMap* map, const Boxes& boxes, int kv_head) {
        if constexpr (one_by_one<columns>) {
            TILEWRIGHT_UNROLL for (int panel = 0; panel < sm90_panels(columns); ++panel) ptx::ask_for_panel(map, panel * panel_columns, boxes.row, kv_head, boxes.batch);
        } else {
            ptx::ask_for_panels(map, boxes.row, kv_head, boxes.batch);
        }
    }
};

}  // namespace hopper
}  // namespace tilewright::kernel
