// NVIDIA sm_90a, backward: products by warpgroups that own 64 rows each; rows once and columns in rings by the copy engine.
#pragma once
#include "../backward_tile.h"
#include "nvidia_backward_garbage.h"
#include "sm90_backward_garbage.h"
#include "sm90_backward_loader.h"
#include "sm90_backward_places.h"
#include "sm90_backward_products.h"

namespace tilewright::kernel {

template <class Config_>
struct Sm90Backward : Sm90BackwardProducts<Config_> {
    using Config = Config_;
    using Products = Sm90BackwardProducts<Config_>;
    using typename Products::Element, typename Products::Tile, typename Products::Scores, typename Products::Rounded, typename Products::QueryGradient, typename Products::QueryOperands, typename Products::Sums;
    template <int depth> using Operand = typename Products::template Operand<depth>;
    template <int depth> using Columns = typename Products::template Columns<depth>;
    using Products::over_keys, Products::gives_queries, Products::ordered, Products::rows, Products::columns, Products::workers, Products::scored_depth, Products::carried_depth;
    static constexpr bool works_by_rows = gives_queries && Config::persistent;
    static constexpr int counting_threads = !gives_queries ? 0 : ordered ? workers : works_by_rows ? 1 : 0;  // of the loading warpgroup: they follow the consumers' tiles
    static constexpr int stages = Config::stages;
    static constexpr Sm90BackwardShared shape = sm90_backward_shared(rows, columns, scored_depth, carried_depth, stages, over_keys, gives_queries, works_by_rows);
    static constexpr int threads = 128 * (workers + 1), shared_bytes = shape.bytes;
    static_assert(rows == 64 * workers && columns % 16 == 0 && Config::aligned);

    using Arguments = Sm90BackwardArguments;
    using Slopes = typename Choose<Config::softcap, Scores, NoFragment>::type;
    static constexpr bool query_part_lags = true, shares_carried = stages == 1;
    static constexpr bool takes_off(int) { return gives_queries && hopper::splits_statistics<Config>; }  // log-sums [0] and deltas [1] while products are made

    static TILEWRIGHT_DEVICE float min(float a, float b) { return ptx::min_nan(a, b); }  // of NaN it is NaN

    // What the prologue wrote of the queries, which are columns or rows. Read where it is needed: no more of it is ever in registers.
    struct Statistics {
        const char* at_lane;
        TILEWRIGHT_DEVICE explicit Statistics(unsigned from) : at_lane((const char*)__cvta_shared_to_generic(from + 4 * (over_keys ? Scores::column(0) : Scores::row(0)))) {}
        TILEWRIGHT_DEVICE float at(int r, int c) const {
            if constexpr (over_keys) {
                float2 pair = ptx::read_shared<float2>(at_lane + c / 2 * 32);
                return c % 2 ? pair.y : pair.x;
            } else {
                return ptx::read_shared<float>(at_lane + r * 32);
            }
        }
    };

    // The first are read before products begin, which leave shared memory no time for others: of 64 columns S and dP read all that it gives.
    // A window's bounds take the registers that this would.
    static constexpr int read_ahead = over_keys && !takes_off(0) && columns <= 64 && Config::mask != Mask::window ? 2 : 0;
    struct LogSums {
        float first[2];
        Statistics all;
        TILEWRIGHT_DEVICE float at(int r, int c) const { return c < read_ahead ? first[c] : all.at(r, c); }
    };

    using Shared = Sm90BackwardPlaces<Sm90Backward>;

    // Where every ring is follows from how many steps and tiles are done: positions kept apart would take registers.
    struct Pipeline : Sm90Hidden<Config> {
        using Hidden = Sm90Hidden<Config>;
        using Hidden::zeros, Hidden::keys_hold_garbage, Hidden::garbage_in_keys, Hidden::cleaners, Hidden::cleaners_barrier;
        using Steps = hopper::Ring<stages>;
        using Buffers = hopper::Ring<2>;
        Shared shared;
        int worker = __shfl_sync(~0u, (int)threadIdx.x / 128 - 1, 0), tile_parity;  // the latter from next_tile() to row_carried()
        unsigned n = 0;

        // A tile's index arrives with what is scored of its rows. How many tiles the warp has had lies in shared memory: no register is free for it while it walks.
        TILEWRIGHT_DEVICE int next_tile() {
            int index, tiles;
            ptx::load_shared(tiles, shared.tiles((int)threadIdx.x / 32 - 4));
            tile_parity = tiles & 1, keys_hold_garbage = false;
            ptx::barrier_wait(shared.rows_full(0), tile_parity);
            ptx::load_shared(index, shared.tile_index());
            if constexpr (counting_threads > 0 && !ordered)  // that of the tile before, whose last parts are in memory by now
                if (tiles > 0 && threadIdx.x % 32 == 0) ptx::wait_until_added(), ptx::barrier_arrive(shared.tile_added());
            __syncwarp();  // all lanes have read both, of which one releases the index
            if (threadIdx.x % 32 == 0) ptx::store_shared(shared.tiles((int)threadIdx.x / 32 - 4), tiles + 1);
            return __shfl_sync(~0u, index, 0);
        }
        TILEWRIGHT_DEVICE Operand<scored_depth> row_scored() const { return {hopper::operand(shared.row_tile(0) + worker * 64 * 128, rows)}; }
        TILEWRIGHT_DEVICE Operand<carried_depth> row_carried() const {
            ptx::barrier_wait(shared.rows_full(1), tile_parity);
            __syncwarp();  // a tile without steps has no product between this and what releases the rows
            return {hopper::operand(shared.row_tile(1) + worker * 64 * 128, rows)};
        }
        template <int which, int depth>
        TILEWRIGHT_DEVICE auto column_tile() const {
            Steps at = Steps::at(n);
            ptx::barrier_wait(shared.full(which, at.stage), at.parity);
            Operand<depth> tile{hopper::operand(shared.column_tile(which, at.stage), columns)};
            if constexpr (takes_off(which)) return Columns<depth>{tile, shared.statistics(which, at.stage), shared.factors()};
            else return tile;
        }
        TILEWRIGHT_DEVICE auto scored(const BackwardStep&) {
            zeros = 0;
            return column_tile<0, scored_depth>();
        }
        TILEWRIGHT_DEVICE auto carried(const BackwardStep&) const { return column_tile<1, carried_depth>(); }
        template <int which>
        TILEWRIGHT_DEVICE auto statistics() const {
            if constexpr (takes_off(which)) return TakenOff{};
            else return Statistics(shared.statistics(which, over_keys ? Steps::at(n).stage : 0));
        }
        TILEWRIGHT_DEVICE auto log_sums(const BackwardStep&) const {
            if constexpr (read_ahead == 0) {
                return statistics<0>();
            } else {
                LogSums log_sums{{}, statistics<0>()};
                TILEWRIGHT_UNROLL for (int c = 0; c < read_ahead; ++c) log_sums.first[c] = log_sums.all.at(0, c);
                return log_sums;
            }
        }
        TILEWRIGHT_DEVICE auto deltas(const BackwardStep&) const { return statistics<1>(); }
        TILEWRIGHT_DEVICE void release_carried() const {
            // All lanes have read their statistics. Parts of dQ are handed over behind a fence, which serves these too.
            if constexpr (gives_queries) __syncwarp();
            else hopper::settle_reads();
            hopper::release(shared.free(1, Steps::at(n).stage));
        }
        TILEWRIGHT_DEVICE void release_scored() {
            hopper::release(shared.free(0, Steps::at(n).stage)), ++n;
            ptx::forget(n);  // unknown to the compiler, which else keeps what follows from it in registers that are short
        }
        // Each as soon as it is read no more: the next tile's take a while to come. Over queries statistics are read beside them, in whose place those of the
        // next tile come.
        TILEWRIGHT_DEVICE void release_row_scored(bool last) const { release_rows(0, last); }
        TILEWRIGHT_DEVICE void release_row_carried(bool last) const { release_rows(1, last); }
        TILEWRIGHT_DEVICE void release_rows(int which, bool last) const {
            if constexpr (!over_keys) hopper::settle_reads();
            hopper::release_if<ordered>(last, shared.rows_free(which));
        }

        // dS^T of this worker's keys, turned: a panel of 64 keys for each worker.
        TILEWRIGHT_DEVICE void publish(const Rounded& changes) const {
            if (garbage_in_keys()) Sm90KeyGarbage<Sm90Backward>::hide(shared.row_tile(0));
            ptx::barrier_wait(shared.changes_free(Buffers::at(n).stage), Buffers::at(n).parity ^ 1);  // all have read that of two steps ago
            Products::store_turned(shared.changes(Buffers::at(n).stage) + worker * columns * 128, changes);
        }
        TILEWRIGHT_DEVICE QueryOperands published() const {  // in the step before
            Buffers before = Buffers::at(n - 1);
            ptx::barrier_wait(shared.changes_full(before.stage), before.parity);
            constexpr int column = Sums::by_query ? 0 : Sums::width;
            return {hopper::operand(shared.changes(before.stage) + (Sums::by_query ? worker * 64 * 128 : 0), columns),
                    hopper::operand(shared.row_tile(0) + worker * (column / panel_columns * rows * 128 + column % panel_columns * 2), rows)};
        }
        // Each warp puts its part into shared memory, when its last one has been read from there,
        TILEWRIGHT_DEVICE void hold(const QueryGradient& part) {
            hopper::release(shared.changes_free(Buffers::at(n - 1).stage));
            if (threadIdx.x % 32 == 0) {
                if constexpr (ordered) ptx::barrier_wait(shared.sums_free(worker), n & 1);
                else ptx::wait_until_read();
            }
            __syncwarp();
            Sums::put(shared.sums((int)threadIdx.x / 32 - 4), part);
        }
        // and has the copy engine add it to what is in memory; in a fixed order it leaves that to add_in_turn(). One fence serves this and
        // what was published of `step`.
        template <class Published, class Held>
        TILEWRIGHT_DEVICE void hand_over(Published, Held, const PlainBackwardParameters& p, const Tile& tile, const BackwardStep& step) {
            if (garbage_in_keys()) {
                __syncwarp();  // all lanes have held their part
                if constexpr (Held::is) Sm90KeyGarbage<Sm90Backward>::reveal(p.forward, tile, tile.first_before(step), [&](int place) { ptx::store_shared(shared.sums(0) + 4 * place, 0x7fc00000); });
                if (Published::is && step.left > 1) Sm90KeyGarbage<Sm90Backward>::restore(p.forward, tile, shared.row_tile(0));
            }
            ptx::fence_async();
            __syncwarp();
            if constexpr (Published::is) hopper::release(shared.changes_full(Buffers::at(n).stage));
            if constexpr (ordered) {
                if constexpr (Held::is) hopper::release(shared.sums_full(worker));
            } else {
                int warp = (int)threadIdx.x / 32 - 4;
                if (Held::is && threadIdx.x % 32 == 0)
                    ptx::add_floats(sums_at(p, published_place) + warp * Sums::warp_floats, shared.sums(warp), Sums::warp_floats * 4);
                published_place = place_of(p, tile, step);
            }
        }
        int published_place = 0;  // of the step before

        // All consumers together, when none is reading the step's columns and none has started its gradients or a part of dQ. Keys too, in
        // this and in all later steps of the tile while parts of dQ are computed.
        TILEWRIGHT_DEVICE void hide_garbage() {
            if constexpr (Config::mask != Mask::none) {
                if (!ptx::named_any(cleaners_barrier, cleaners, !(zeros == 0))) return;
                (void)Hidden::template clean<shape.column_bytes[0]>(shared.column_tile(0, Steps::at(n).stage));
                if constexpr (over_keys) (void)Hidden::template clean<shape.column_bytes[1]>(shared.column_tile(1, Steps::at(n).stage));
                bool of_keys = false;
                if constexpr (gives_queries) of_keys = Hidden::template clean<shape.row_bytes[0]>(shared.row_tile(0));
                ptx::fence_async();
                keys_hold_garbage |= ptx::named_any(cleaners_barrier, cleaners, of_keys);
                ptx::store_shared(shared.found_garbage(), 1);
                Hidden::meet();  // before anyone asks
            }
        }
        TILEWRIGHT_DEVICE void reveal_garbage(const PlainBackwardParameters& p, const Tile& tile) const {
            if constexpr (Config::mask != Mask::none) {
                int found;
                ptx::load_shared(found, shared.found_garbage());
                if (!found) return;
                const ForwardParameters& f = p.forward;
                int first = worker * 64 + (int)threadIdx.x % 128 / 32 * 16;
                if constexpr (over_keys) {
                    nvidia::reveal_gradient<Sm90Backward, false, scored_depth>(f, tile, first, 16, f.query, f.query_strides, p.key_gradient, p.key_gradient_strides);
                    nvidia::reveal_gradient<Sm90Backward, true, carried_depth>(f, tile, first, 16, p.out_gradient, p.out_gradient_strides, p.value_gradient, p.value_gradient_strides);
                } else {
                    nvidia::reveal_gradient<Sm90Backward, false, scored_depth>(f, tile, first, 16, f.key, f.key_strides, p.query_gradient, p.query_gradient_strides);
                }
            }
        }
    };

    static TILEWRIGHT_DEVICE int kv_head_of(const PlainBackwardParameters& p, const Tile& tile) { return tile.batch * p.forward.heads_kv + tile.head; }
    // The tile of queries, of those of all heads, and its sums.
    static TILEWRIGHT_DEVICE int place_of(const PlainBackwardParameters& p, const Tile& tile, const BackwardStep& step) {
        return (tile.batch * p.forward.heads_q + step.head) * (p.padded_queries / columns) + step.first / columns;
    }
    static constexpr int sums_floats = columns * backward_sum_columns(scored_depth);
    static TILEWRIGHT_DEVICE float* sums_at(const PlainBackwardParameters& p, int place) { return p.query_sums + (long long)place * sums_floats; }

    // Blocks draw tiles until nothing is left.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_tile(const Arguments& arguments, char* raw_shared, Body&& body) {
        constexpr int released = hopper::releases(4 * workers);
        Shared shared(raw_shared);
        if (threadIdx.x == 0) {
            ptx::store_shared(shared.found_garbage(), 0);
            for (int warp = 0; warp < 4 * workers; ++warp) ptx::store_shared(shared.tiles(warp), 0);
            for (int worker = 0; worker < workers; ++worker) ptx::barrier_init(shared.sums_full(worker), hopper::releases(4)), ptx::barrier_init(shared.sums_free(worker), 1);
            for (int i = 0; i < 2; ++i) {
                ptx::barrier_init(shared.rows_full(i), 1), ptx::barrier_init(shared.rows_free(i), released + (i == 0 ? counting_threads : 0));
                ptx::barrier_init(shared.changes_full(i), released), ptx::barrier_init(shared.changes_free(i), released);
                for (int stage = 0; stage < stages; ++stage) ptx::barrier_init(shared.full(i, stage), 1), ptx::barrier_init(shared.free(i, stage), released);
            }
            if constexpr (works_by_rows) {
                ptx::barrier_init(shared.tile_added(), 4 * workers);
                for (int warp = 0; warp < sm90_warps_by_rows + 4 * workers; ++warp) ptx::barrier_init(shared.by_rows_full(warp), 1);
            }
            ptx::barrier_init_done();
        }
        if (takes_off(0) && threadIdx.x < 32) hopper::store_factors(shared.factors());
        __syncthreads();
        hopper::divide_work<workers, 1, works_by_rows ? sm90_backward_registers_by_rows : sm90_backward_registers_loading>(
            [&] {
                if (threadIdx.x == 0) Sm90BackwardLoader<Sm90Backward>::load(arguments, shared);
                else if (counting_threads > 0 && threadIdx.x % 32 == 0 && (int)threadIdx.x / 32 <= counting_threads) Sm90BackwardLoader<Sm90Backward>::count_tiles(arguments.parameters, shared, (int)threadIdx.x / 32 - 1);
                if constexpr (works_by_rows) Sm90BackwardRows<Sm90Backward>::work(arguments.parameters, shared);
            },
            [&] {
                const ForwardParameters& p = arguments.parameters.forward;
                Pipeline pipeline{{}, shared};
                for (int index; (index = pipeline.next_tile()) < p.tiles;) body(backward_tile_at<Config>(p, index), pipeline);
                if constexpr (gives_queries && !ordered)
                    if (threadIdx.x % 32 == 0) ptx::wait_until_added();
                if constexpr (works_by_rows) Sm90BackwardRows<Sm90Backward>::help(arguments.parameters, shared);
            });
    }
};

}  // namespace tilewright::kernel
