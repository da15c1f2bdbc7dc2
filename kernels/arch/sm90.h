// NVIDIA sm_90a: products by warpgroups, tiles by the copy engine into rings guarded by barriers, one warpgroup that loads.
#pragma once
#include "nvidia_garbage.h"
#include "sm90_output.h"
#include "sm90_shared.h"

namespace tilewright::kernel {

template <class Config_>
struct Sm90 : hopper::Common {
    using Config = Config_;
    using Element = typename Config::Element;
    static constexpr int block_q = Config::block_q, block_kv = Config::block_kv, head_dim = Config::head_dim, head_dim_v = Config::head_dim_v;
    static constexpr int stages = Config::stages, workers = Config::workers;
    static constexpr NvidiaTile shape{head_dim, head_dim_v, 2, block_q, block_kv, stages, workers, Config::blocks, Config::overlapped, Config::persistent};
    static constexpr int threads = sm90_threads(shape);
    static constexpr int query_bytes = sm90_tile_bytes(block_q, head_dim), query_stages = sm90_query_stages(shape);
    static constexpr int key_bytes = sm90_tile_bytes(block_kv, head_dim), value_bytes = sm90_tile_bytes(block_kv, head_dim_v);
    static constexpr int shared_bytes = query_stages * query_bytes + stages * (key_bytes + value_bytes) + sm90_barrier_bytes + sm90_alignment;
    static_assert(shared_bytes == sm90_shared_bytes(shape));
    static_assert(Config::aligned, "the copy engine needs multiples of 16 bytes");
    static_assert(block_q == 64 * workers && workers <= 3 && block_kv % 16 == 0 && block_kv <= 256 && head_dim_v % 8 == 0);
    static_assert(stages <= sm90_most_stages);

    // The place of a single tile of queries is wanted for the next.
    static constexpr bool stores_through_query = query_stages > 1 && head_dim_v % 32 == 0 && head_dim_v <= sm90_panels(head_dim) * panel_columns;
    static constexpr bool halves = sm90_halves(block_kv, Config::mask != Mask::none);
    using Arguments = Sm90ArgumentsWith<ParametersOf<Config>>;
    using Place = TilePlace<Config::packed>;
    using Scores = hopper::Accumulator<Element, block_kv>;
    using HalfScores = hopper::FirstHalf<Scores>;
    using Output = hopper::Output<Element, head_dim_v>;
    using Rounded = nvidia::Rounded<Scores>;
    using HalfRounded = nvidia::Rounded<HalfScores>;

    template <class Scores>
    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, unsigned query, unsigned keys) {
        hopper::start_scores<round_up(head_dim, 16), block_q, block_kv>(scores, query, keys);
    }
    template <class Scores>
    static TILEWRIGHT_DEVICE void start_output(Output& output, const nvidia::Rounded<Scores>& p, unsigned values) {
        hopper::start_output<4 * Scores::columns>(output, p, values);
    }

    using Shared = hopper::Shared<Place, workers, query_stages, stages, query_bytes, key_bytes, value_bytes>;

    struct Pipeline {
        Shared shared;
        int worker = __shfl_sync(~0u, (int)threadIdx.x / 128 - 1, 0);
        hopper::Ring<query_stages> queries;
        hopper::Ring<stages> key_ring, value_ring;

        TILEWRIGHT_DEVICE Place next_place() {
            ptx::barrier_wait(shared.query_full(queries.stage), queries.parity);
            Place place = hopper::read_place<Place>(shared.place(queries.stage));
            place.first_row = __shfl_sync(~0u, place.first_row, 0);
            if constexpr (!stores_through_query) __syncwarp(), hopper::release(shared.place_free(queries.stage));  // every lane has read it
            return place;
        }
        TILEWRIGHT_DEVICE unsigned query() { return hopper::operand(shared.query(queries.stage) + worker * 64 * 128, block_q); }
        TILEWRIGHT_DEVICE unsigned keys() {
            ptx::barrier_wait(shared.keys_full(key_ring.stage), key_ring.parity);
            return hopper::operand(shared.keys(key_ring.stage), block_kv);
        }
        TILEWRIGHT_DEVICE unsigned values() {
            ptx::barrier_wait(shared.values_full(value_ring.stage), value_ring.parity);
            return hopper::operand(shared.values(value_ring.stage), block_kv);
        }
        TILEWRIGHT_DEVICE void release_query() { hopper::release(shared.query_free(queries.stage)), queries.advance(); }
        TILEWRIGHT_DEVICE void release_keys() { hopper::release(shared.keys_free(key_ring.stage)), key_ring.advance(); }
        TILEWRIGHT_DEVICE void release_values() { hopper::release(shared.values_free(value_ring.stage)), value_ring.advance(); }
        TILEWRIGHT_DEVICE void turn_and_release_query(Output& output) {
            ptx::named_sync(1 + workers + worker, 128);  // the queries have been read
            output.turn(shared.query(queries.stage) + worker * 64 * 128 + threadIdx.x / 32 % 4 * 16 * 128, block_q * 128);
            __syncwarp();
            release_query();
        }
        // Warpgroups issue their products in turn, so that one's softmax runs beside another's products.
        TILEWRIGHT_DEVICE void take_turn() {
            if (Config::turns && workers > 1) ptx::named_sync(1 + worker, 256);
        }
        TILEWRIGHT_DEVICE void pass_turn() {
            if (Config::turns && workers > 1) ptx::named_arrive(1 + (worker + 1) % workers, 256);
        }

        // KV tiles that none of this worker's rows sees are given back unread.
        TILEWRIGHT_DEVICE void skip(int count, const Tile<Config>& own) {
            _Pragma("unroll 1") for (int i = 0; i < count; ++i) {
                // Every worker takes as many turns; overlapped and not short of space, one fewer than there are tiles.
                if (!Config::overlapped || short_of_space<Config> || i > 0 || own.kv_begin < own.kv_end) take_turn(), pass_turn();
                keys(), __syncwarp(), release_keys();  // no product lies between, in which lanes that have yet to wait would be met
                values(), __syncwarp(), release_values();
            }
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
                ptx::store_shared(shared.query(queries.stage) + piece / 8 * block_q * 128 + row * 128 + (piece % 8 ^ row % 8) * 16, x);
            }
            ptx::fence_async();
            ptx::named_sync(barrier, 128);
        }
    };

    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_tile(const Arguments& arguments, char* raw_shared, Body&& body) {
        Shared shared(raw_shared);
        if (threadIdx.x == 0) {
            for (int stage = 0; stage < query_stages; ++stage) {
                ptx::barrier_init(shared.query_full(stage), 1);
                ptx::barrier_init(shared.query_free(stage), hopper::releases(4 * workers));
                ptx::barrier_init(shared.place_free(stage), hopper::releases(4 * workers));
            }
            for (int stage = 0; stage < stages; ++stage) {
                ptx::barrier_init(shared.keys_full(stage), 1);
                ptx::barrier_init(shared.values_full(stage), 1);
                ptx::barrier_init(shared.keys_free(stage), hopper::releases(4 * workers));
                ptx::barrier_init(shared.values_free(stage), hopper::releases(4 * workers));
            }
            if constexpr (nvidia::hides_values<Config>) {
                for (int stage = 0; stage < stages; ++stage) {
                    ptx::barrier_init(shared.landed(stage), 1);
                    ptx::barrier_init(shared.landed_free(stage), cleaners);
                }
                ptx::store_shared(shared.found_garbage(), 0);
            }
            ptx::barrier_init_done();
        }
        __syncthreads();
        hopper::divide_work<workers, Config::blocks>([&] { load(arguments, shared); }, [&] { consume(arguments.parameters, shared, body); });
    }

private:
    static constexpr int cleaners = 96;  // threads

    template <class Body>
    static TILEWRIGHT_DEVICE void consume(const ParametersOf<Config>& parameters, const Shared& shared, Body&& body) {
        const ForwardParameters& p = forward_of(parameters);
        Pipeline pipeline{shared};
        if (pipeline.worker == workers - 1) pipeline.pass_turn();
        for (bool first = true;; first = false) {
            Place place = Config::persistent || first ? pipeline.next_place() : no_tile<Config>();
            if constexpr (nvidia::hides_values<Config>) {
                int found = ptx::load_relaxed(shared.found_garbage()), warp = (int)threadIdx.x / 32 - 4;
                if (hopper::Common::any(found) && !first) {  // one lane may see it set, and one not yet
                    nvidia::reveal(p, tile_at<Config, sm90_worker_rows>(parameters, hopper::read_place<Place>(shared.stored_place(warp))), warp * 16, 16);
                    __syncwarp();
                }
                if (threadIdx.x % 32 == 0) hopper::write_place(shared.stored_place(warp), place);
                __syncwarp();
            }
            if (place.first_row < 0) break;
            Tile<Config> tile = tile_at<Config, sm90_worker_rows>(parameters, place), own = tile.part(pipeline.worker * 64, 64);
            if constexpr (Config::packs_heads) pipeline.gather_queries(p, tile);
            pipeline.skip(tile.kv_end - own.kv_end, own);
            body(own, pipeline);
            pipeline.skip(own.kv_begin - tile.kv_begin, own);
        }
    }

    // Of the loading warpgroup: one thread starts all copies; three warps look through values that are hidden in part.
    static TILEWRIGHT_DEVICE void load(const Arguments& arguments, const Shared& shared) {
        if (threadIdx.x == 0) produce(arguments, shared);
        if constexpr (nvidia::hides_values<Config>)
            if (threadIdx.x >= 32) clean_values(shared);
    }
    static TILEWRIGHT_DEVICE void clean_values(const Shared& shared) {
        constexpr int barrier = 1 + 2 * workers;
        hopper::Ring<stages> requests;
        for (;; requests.advance()) {
            int stage;
            ptx::barrier_wait(shared.landed(requests.stage), requests.parity);
            ptx::load_shared(stage, shared.landed_stage(requests.stage));
            ptx::barrier_arrive(shared.landed_free(requests.stage));  // every thread: each has read it
            if (stage < 0) return;
            unsigned values = shared.values(stage);
            if (nvidia::clean<Element, value_bytes / 16, cleaners>(threadIdx.x - 32, [&](int i) { return values + i * 16; })) {
                ptx::store_relaxed(shared.found_garbage(), 1);
                ptx::fence_async();
            }
            ptx::named_sync(barrier, cleaners);
            if (threadIdx.x == 32) ptx::barrier_arrive(shared.values_full(stage));
        }
    }

    // Rows from `row` on of a batch; of packed sequences that is the first row of one, and the map has a single batch.
    template <int columns, int rows>
    static TILEWRIGHT_DEVICE void copy(unsigned to, const TensorMap* map, unsigned barrier, int row, int head, int batch) {
        if constexpr (Config::packed) hopper::copy_tile<columns, rows>(to, map, barrier, batch + row, head, 0);
        else hopper::copy_tile<columns, rows>(to, map, barrier, row, head, batch);
    }

    static TILEWRIGHT_DEVICE void produce(const Arguments& arguments, const Shared& shared) {
        const ForwardParameters& p = forward_of(arguments.parameters);
        hopper::Ring<query_stages> queries;
        hopper::Ring<stages> key_ring, value_ring, requests;
        auto deal = [&](const Place& place, bool copies) {
            int stage = queries.stage;
            ptx::barrier_wait(shared.query_free(stage), queries.parity ^ 1);
            if constexpr (!stores_through_query) ptx::barrier_wait(shared.place_free(stage), queries.parity ^ 1);  // else the queries are given back last
            hopper::write_place(shared.place(stage), place);
            ptx::barrier_expect(shared.query_full(stage), copies ? query_bytes : 0);
            if (copies) copy<head_dim, block_q>(shared.query(stage), &arguments.query, shared.query_full(stage), place.first_row, place.head, place.batch);
            queries.advance();
        };
        auto place_of = [&](int index) { return index < p.tiles ? place_at<Config, sm90_worker_rows>(arguments.parameters, index) : no_tile<Config>(); };
        auto request = [&](int stage) {
            unsigned landed = shared.landed(requests.stage);
            ptx::barrier_wait(shared.landed_free(requests.stage), requests.parity ^ 1);
            ptx::store_shared(shared.landed_stage(requests.stage), stage);
            requests.advance();
            return landed;
        };
        Place place = place_of(blockIdx.x);
        if constexpr (query_stages > 1) deal(place, !Config::packs_heads && place.first_row >= 0);
        while (place.first_row >= 0) {
            Tile<Config> tile = tile_at<Config, sm90_worker_rows>(arguments.parameters, place);
            Place next = no_tile<Config>();
            // Late enough that blocks stay even, early enough that the next queries are there when they are wanted.
            int ahead = min_of(tile.kv_end - 1, tile.kv_begin + 1);
            auto look_ahead = [&] {
                next = place_of(nvidia::draw_tile(p));
                if (query_stages > 1) deal(next, !Config::packs_heads && next.first_row >= 0);
            };
            bool empty = tile.kv_end <= tile.kv_begin;
            if (query_stages == 1 && empty) deal(place, false);
            constexpr bool in_time = Config::persistent && !Config::packed;  // finding a packed tile takes registers: not beside a loop
            if (in_time && empty) look_ahead();
            auto copy_values = [&](int kv) {
                int stage = value_ring.stage;
                ptx::barrier_wait(shared.values_free(stage), value_ring.parity ^ 1);
                unsigned full = shared.values_full(stage);
                if (nvidia::hides_values<Config> && nvidia::hides(tile, kv)) full = request(stage);
                ptx::barrier_expect(full, value_bytes);
                copy<head_dim_v, block_kv>(shared.values(stage), &arguments.value, full, kv * block_kv, tile.kv_head, tile.key_batch());
                value_ring.advance();
            };
            constexpr int behind = short_of_space<Config> ? 1 : 0;  // KV tiles, of the values
            _Pragma("unroll 1") for (int kv = tile.kv_end - 1; !empty && kv >= tile.kv_begin - behind; --kv) {
                if (kv >= tile.kv_begin) {
                    int stage = key_ring.stage;
                    ptx::barrier_wait(shared.keys_free(stage), key_ring.parity ^ 1);
                    ptx::barrier_expect(shared.keys_full(stage), key_bytes);
                    copy<head_dim, block_kv>(shared.keys(stage), &arguments.key, shared.keys_full(stage), kv * block_kv, tile.kv_head, tile.key_batch());
                    key_ring.advance();
                    // After the keys, whose space is free sooner than that of the only tile of queries.
                    if (query_stages == 1 && kv == tile.kv_end - 1) deal(place, !Config::packs_heads);
                }
                if (kv + behind < tile.kv_end) copy_values(kv + behind);
                if (in_time && kv == ahead) look_ahead();
            }
            if (Config::persistent && !in_time) look_ahead();
            place = next;
        }
        // Nothing is left.
        if constexpr (Config::persistent && query_stages == 1) deal(place, false);
        if constexpr (nvidia::hides_values<Config>) ptx::barrier_arrive(request(-1));
    }
};

}  // namespace tilewright::kernel
