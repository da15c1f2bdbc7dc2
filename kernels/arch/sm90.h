// NVIDIA sm_90a: products by warpgroups, tiles by the copy engine into rings guarded by barriers, one warpgroup that loads.
#pragma once
#include "hopper_wgmma.h"

namespace tilewright::kernel {

template <class Config_>
struct Sm90 : hopper::Common {
    using Config = Config_;
    using Element = typename Config::Element;
    static constexpr int block_q = Config::block_q, block_kv = Config::block_kv, head_dim = Config::head_dim, head_dim_v = Config::head_dim_v;
    static constexpr int stages = Config::stages, workers = Config::workers;
    static constexpr NvidiaTile shape{head_dim, head_dim_v, 2, block_q, block_kv, stages, workers, Config::blocks, Config::overlapped};
    static constexpr int threads = sm90_threads(shape);
    static constexpr int query_bytes = sm90_tile_bytes(block_q, head_dim);
    static constexpr int key_bytes = sm90_tile_bytes(block_kv, head_dim), value_bytes = sm90_tile_bytes(block_kv, head_dim_v);
    static constexpr int tile_bytes = query_bytes + stages * (key_bytes + value_bytes);
    static constexpr int shared_bytes = tile_bytes + sm90_barrier_bytes + sm90_alignment;
    static_assert(shared_bytes == sm90_shared_bytes(shape));
    static_assert(Config::aligned, "the copy engine needs multiples of 16 bytes");
    static_assert(block_q == 64 * workers && workers <= 3 && block_kv % 16 == 0 && block_kv <= 256 && head_dim_v % 8 == 0);
    static_assert(stages <= sm90_most_stages);

    using Arguments = Sm90Arguments;
    using Scores = hopper::Accumulator<Element, block_kv>;
    using Output = hopper::Accumulator<Element, head_dim_v>;
    using Rounded = nvidia::Rounded<Scores>;

    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, unsigned query, unsigned keys) {
        hopper::start_scores<round_up(head_dim, 16), block_q, block_kv>(scores, query, keys);
    }
    static TILEWRIGHT_DEVICE void start_output(Output& output, const Rounded& p, unsigned values) { hopper::start_output<block_kv>(output, p, values); }

    // Where things are in shared memory. A buffer is full when its bytes have come, and free when every warp has released it.
    struct Shared {
        unsigned base;
        TILEWRIGHT_DEVICE explicit Shared(char* shared) : base((ptx::shared_address(shared) + sm90_alignment - 1) & ~(sm90_alignment - 1u)) {}
        TILEWRIGHT_DEVICE unsigned query() const { return base; }
        TILEWRIGHT_DEVICE unsigned keys(int stage) const { return base + query_bytes + stage * key_bytes; }
        TILEWRIGHT_DEVICE unsigned values(int stage) const { return base + query_bytes + stages * key_bytes + stage * value_bytes; }
        TILEWRIGHT_DEVICE unsigned barrier(int i) const { return base + tile_bytes + 8 * i; }
        TILEWRIGHT_DEVICE unsigned query_full() const { return barrier(0); }
        TILEWRIGHT_DEVICE unsigned query_free() const { return barrier(1); }
        TILEWRIGHT_DEVICE unsigned keys_full(int stage) const { return barrier(2 + stage); }
        TILEWRIGHT_DEVICE unsigned keys_free(int stage) const { return barrier(2 + stages + stage); }
        TILEWRIGHT_DEVICE unsigned values_full(int stage) const { return barrier(2 + 2 * stages + stage); }
        TILEWRIGHT_DEVICE unsigned values_free(int stage) const { return barrier(2 + 3 * stages + stage); }
        TILEWRIGHT_DEVICE unsigned tile_index() const { return barrier(sm90_barrier_bytes / 8 - 1); }
    };

    struct Pipeline {
        Shared shared;
        int worker = __shfl_sync(~0u, (int)threadIdx.x / 128 - 1, 0);
        hopper::Ring<1> queries;
        hopper::Ring<stages> key_ring, value_ring;

        // A tile's index arrives with its queries.
        TILEWRIGHT_DEVICE int next_tile() {
            int index;
            ptx::barrier_wait(shared.query_full(), queries.parity);
            ptx::load_shared(index, shared.tile_index());
            return __shfl_sync(~0u, index, 0);
        }
        TILEWRIGHT_DEVICE unsigned query() { return hopper::operand(shared.query() + worker * 64 * 128, block_q); }
        TILEWRIGHT_DEVICE unsigned keys() {
            ptx::barrier_wait(shared.keys_full(key_ring.stage), key_ring.parity);
            return hopper::operand(shared.keys(key_ring.stage), block_kv);
        }
        TILEWRIGHT_DEVICE unsigned values() {
            ptx::barrier_wait(shared.values_full(value_ring.stage), value_ring.parity);
            return hopper::operand(shared.values(value_ring.stage), block_kv);
        }
        TILEWRIGHT_DEVICE void release_query() { hopper::release(shared.query_free()), queries.advance(); }
        TILEWRIGHT_DEVICE void release_keys() { hopper::release(shared.keys_free(key_ring.stage)), key_ring.advance(); }
        TILEWRIGHT_DEVICE void release_values() { hopper::release(shared.values_free(value_ring.stage)), value_ring.advance(); }
        // Warpgroups issue their products in turn, so that one's softmax runs beside another's products.
        TILEWRIGHT_DEVICE void take_turn() {
            if (Config::turns && workers > 1) ptx::named_sync(1 + worker, 256);
        }
        TILEWRIGHT_DEVICE void pass_turn() {
            if (Config::turns && workers > 1) ptx::named_arrive(1 + (worker + 1) % workers, 256);
        }

        // Rows of a tile in which the heads of a group alternate are no box: their warpgroup gathers them itself.
        TILEWRIGHT_DEVICE void gather_queries(const ForwardParameters& p, const Tile<Config>& tile) {
            constexpr int pieces = sm90_panels(head_dim) * 8;
            int barrier = 1 + workers + worker;
            ptx::named_sync(barrier, 128);  // the last tile's have been read
            _Pragma("unroll 1") for (int i = threadIdx.x % 128; i < 64 * pieces; i += 128) {
                int row = worker * 64 + i / pieces, piece = i % pieces;
                uint4 x{};
                if (tile.inside(row) && piece * 8 < head_dim)
                    x = ((const uint4*)row_of((const Element*)p.query, p.query_strides, tile.batch, tile.head_of(row), tile.query(row)))[piece];
                ptx::store_shared(shared.query() + piece / 8 * block_q * 128 + row * 128 + (piece % 8 ^ row % 8) * 16, x);
            }
            ptx::fence_async();
            ptx::named_sync(barrier, 128);
        }
    };

    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_tile(const Arguments& arguments, char* raw_shared, Body&& body) {
        Shared shared(raw_shared);
        if (threadIdx.x == 0) {
            ptx::barrier_init(shared.query_full(), 1);
            ptx::barrier_init(shared.query_free(), 4 * workers);
            for (int stage = 0; stage < stages; ++stage) {
                ptx::barrier_init(shared.keys_full(stage), 1);
                ptx::barrier_init(shared.values_full(stage), 1);
                ptx::barrier_init(shared.keys_free(stage), 4 * workers);
                ptx::barrier_init(shared.values_free(stage), 4 * workers);
            }
            ptx::barrier_init_done();
        }
        __syncthreads();
        hopper::divide_work<workers, Config::blocks>([&] { produce(arguments, shared); }, [&] { consume(arguments.parameters, shared, body); });
    }

private:
    template <class Body>
    static TILEWRIGHT_DEVICE void consume(const ForwardParameters& p, const Shared& shared, Body&& body) {
        Pipeline pipeline{shared};
        if (pipeline.worker == workers - 1) pipeline.pass_turn();
        for (int index; (index = pipeline.next_tile()) < p.tiles;) {
            Tile<Config> tile = tile_at<Config>(p, index);
            if constexpr (Config::packs_heads) pipeline.gather_queries(p, tile);
            body(tile, pipeline);
            if constexpr (!Config::persistent) break;
        }
    }

    static TILEWRIGHT_DEVICE void produce(const Arguments& arguments, const Shared& shared) {
        const ForwardParameters& p = arguments.parameters;
        hopper::Ring<1> queries;
        hopper::Ring<stages> ring;
        auto deal = [&](int index, int bytes) {
            ptx::barrier_wait(shared.query_free(), queries.parity ^ 1);
            ptx::store_shared(shared.tile_index(), index);
            ptx::barrier_expect(shared.query_full(), bytes);
            queries.advance();
        };
        int index = blockIdx.x;
        while (index < p.tiles) {
            Tile<Config> tile = tile_at<Config>(p, index);
            if (tile.kv_end <= tile.kv_begin) deal(index, 0);
            _Pragma("unroll 1") for (int kv = tile.kv_end - 1; kv >= tile.kv_begin; --kv) {
                ptx::barrier_wait(shared.keys_free(ring.stage), ring.parity ^ 1);
                ptx::barrier_expect(shared.keys_full(ring.stage), key_bytes);
                hopper::copy_tile<head_dim, block_kv>(shared.keys(ring.stage), &arguments.key, shared.keys_full(ring.stage), kv * block_kv, tile.kv_head, tile.batch);
                if (kv == tile.kv_end - 1) {  // after the keys, whose space is free sooner
                    deal(index, Config::packs_heads ? 0 : query_bytes);
                    if constexpr (!Config::packs_heads)
                        hopper::copy_tile<head_dim, block_q>(shared.query(), &arguments.query, shared.query_full(), tile.first_row, tile.head, tile.batch);
                }
                ptx::barrier_wait(shared.values_free(ring.stage), ring.parity ^ 1);
                ptx::barrier_expect(shared.values_full(ring.stage), value_bytes);
                hopper::copy_tile<head_dim_v, block_kv>(shared.values(ring.stage), &arguments.value, shared.values_full(ring.stage), kv * block_kv, tile.kv_head, tile.batch);
                ring.advance();
            }
            if constexpr (!Config::persistent) return;
            index = nvidia::draw_tile(p);
        }
        deal(index, 0);  // nothing left
    }
};

}  // namespace tilewright::kernel
