// NVIDIA sm_80 and later: products by warps, cp.async into rings of key and value tiles.
#pragma once
#include "fma.h"
#include "nvidia_rows.h"
#include "sm80_copy.h"

namespace tilewright::kernel {

template <class Config_>
struct Sm80 : WarpProducts<Config_> {
    using Config = Config_;
    using Element = typename Config::Element;
    using Products = WarpProducts<Config>;
    static constexpr int element_bytes = sizeof(Element);
    static constexpr int block_q = Config::block_q, block_kv = Config::block_kv, stages = Config::stages;
    static constexpr NvidiaTile shape{Config::head_dim, Config::head_dim_v, element_bytes, block_q, block_kv, stages, Config::workers, Config::blocks, Config::overlapped, Config::persistent};
    static constexpr int threads = sm80_threads(shape);
    static constexpr int query_bytes = sm80_tile_bytes(block_q, Config::head_dim, element_bytes);
    static constexpr int key_bytes = sm80_tile_bytes(block_kv, Config::head_dim, element_bytes);
    static constexpr int value_bytes = sm80_tile_bytes(block_kv, Config::head_dim_v, element_bytes);
    static constexpr int tile_index = query_bytes + stages * (key_bytes + value_bytes);  // where it is in shared memory
    static constexpr int shared_bytes = tile_index + 16;
    static_assert(shared_bytes == sm80_shared_bytes(shape));
    static_assert(!Config::overlapped || stages >= 2, "the next keys are read before this tile's are given back: two stages at least");

    struct Arguments {
        ParametersOf<Config> parameters;
    };

    // Copies are waited for in the order they were started in, and a tile's space is refilled after the next barrier, when
    // every warp is done with it. The order in which the algorithm asks for tiles is that of its schedule:
    //   sequential K0 V0 K1 V1 ..., overlapped K0 (K1 V0) (K2 V1) ...; every copy is a group, an empty one past the end.
    // KvRows says where keys and values are.
    template <class KvRows>
    struct PipelineOver : KvRows {
        const ForwardParameters& p;
        unsigned shared;
        Tile<Config> tile;
        int keys_read = 0, values_read = 0;  // KV tiles, counted from the last
        bool found_garbage = false;          // in some tile of values that are hidden in part

        TILEWRIGHT_DEVICE PipelineOver(const ForwardParameters& p, unsigned shared, const Tile<Config>& tile, const KvRows& rows = {})
            : KvRows(rows), p(p), shared(shared), tile(tile) {
            copy_queries();
            if constexpr (Config::overlapped) {
                copy_keys(0);
                for (int i = 1; i < stages; ++i) copy_keys(i), copy_values(i - 1);
            } else {
                for (int i = 0; i < stages; ++i) copy_keys(i), copy_values(i);
            }
        }
        TILEWRIGHT_DEVICE unsigned query() { return shared; }
        TILEWRIGHT_DEVICE unsigned keys() {
            ptx::copies_wait<Config::overlapped ? 2 * stages - 3 : 2 * stages - 2>();
            __syncthreads();
            if (keys_read > 0) {
                if constexpr (Config::overlapped) copy_keys(keys_read - 1 + stages), copy_values(keys_read - 2 + stages);
                else copy_values(keys_read - 1 + stages);
            }
            return key_space(keys_read++);
        }
        TILEWRIGHT_DEVICE unsigned values() {
            if (Config::overlapped && values_read == tile.kv_end - tile.kv_begin - 1) ptx::copies_wait<0>();
            else ptx::copies_wait<2 * stages - 2>();
            __syncthreads();
            if constexpr (!Config::overlapped) copy_keys(values_read + stages);
            unsigned space = value_space(values_read);
            if constexpr (nvidia::hides_values<Config>)
                if (nvidia::hides(tile, tile.kv_end - 1 - values_read)) {
                    constexpr int pieces = Products::value_pieces;
                    bool found = nvidia::clean<Element, block_kv * pieces, threads>(threadIdx.x, [&](int i) { return space + nvidia::place<pieces>(i / pieces, i % pieces); });
                    found_garbage |= __syncthreads_or(found);
                }
            ++values_read;
            return space;
        }
        TILEWRIGHT_DEVICE void release_query() {}
        TILEWRIGHT_DEVICE void release_keys() {}
        TILEWRIGHT_DEVICE void release_values() {}
        TILEWRIGHT_DEVICE void take_turn() {}
        TILEWRIGHT_DEVICE void pass_turn() {}

    private:
        TILEWRIGHT_DEVICE unsigned key_space(int i) const { return shared + query_bytes + i % stages * key_bytes; }
        TILEWRIGHT_DEVICE unsigned value_space(int i) const { return shared + query_bytes + stages * key_bytes + i % stages * value_bytes; }
        TILEWRIGHT_DEVICE void copy_queries() {
            copy<block_q, Config::head_dim>(shared, tile.rows(), [&](int row) {
                return row_of((const Element*)p.query, p.query_strides, tile.batch, tile.head_of(row), tile.query(row));
            });
        }
        TILEWRIGHT_DEVICE void copy_keys(int i) { copy_kv<Config::head_dim>(key_space(i), i, p.key, p.key_strides); }
        TILEWRIGHT_DEVICE void copy_values(int i) { copy_kv<Config::head_dim_v>(value_space(i), i, p.value, p.value_strides); }
        template <int width>
        TILEWRIGHT_DEVICE void copy_kv(unsigned to, int i, const void* base, const Strides& strides) {
            int first = (tile.kv_end - 1 - i) * block_kv;
            if (i < tile.kv_end - tile.kv_begin) {
                if constexpr (KvRows::paged) {
                    copy<block_kv, width>(to, tile.seq_kv - first, [&](int row) { return this->template at<Element>(base, strides, tile.batch, tile.kv_head, first + row); });
                } else {
                    const Element* from = row_of((const Element*)base, strides, tile.key_batch(), tile.kv_head, first);
                    copy<block_kv, width>(to, tile.seq_kv - first, [&](int row) { return from + row * strides.row; });
                }
            }
            ptx::copies_commit();
        }
        template <int count, int width, class Row>
        TILEWRIGHT_DEVICE void copy(unsigned to, int valid, Row&& from) {
            nvidia::copy_rows<Config, count, width, threads>(to, valid, from);
        }
    };
    using Pipeline = PipelineOver<DenseRows>;

    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_tile(const Arguments& arguments, char* raw_shared, Body&& body) {
        const ForwardParameters& p = forward_of(arguments.parameters);
        unsigned shared = ptx::shared_address(raw_shared);
        int index = blockIdx.x;
        if constexpr (!Config::persistent) {
            run(arguments.parameters, shared, index, body);
            ptx::copies_wait<0>();  // of a tile that sees nothing the queries may be on their way
        } else {
            for (unsigned slot = shared + tile_index; index < p.tiles; slot ^= 8) {
                int next = threadIdx.x == 0 ? nvidia::draw_tile(p) : 0;
                run(arguments.parameters, shared, index, body);
                ptx::copies_wait<0>();
                if (threadIdx.x == 0) ptx::store_shared(slot, next);
                __syncthreads();  // the index is there, and all warps are done with the tile
                ptx::load_shared(index, slot);
            }
        }
    }

private:
    template <class Body>
    static TILEWRIGHT_DEVICE void run(const ParametersOf<Config>& parameters, unsigned shared, int index, Body&& body) {
        const ForwardParameters& p = forward_of(parameters);
        Tile<Config> tile = tile_at<Config>(parameters, index);
        Pipeline pipeline(p, shared, tile);
        body(tile, pipeline);
        if constexpr (nvidia::hides_values<Config>) {
            constexpr int rows = block_q / Config::workers;
            if (pipeline.found_garbage) nvidia::reveal(p, tile, (int)threadIdx.x / 32 * rows, rows);
        }
    }
};

}  // namespace tilewright::kernel
