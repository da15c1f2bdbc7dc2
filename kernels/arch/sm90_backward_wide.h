// NVIDIA sm_90a, backward of wide heads: 64 rows of one gradient take half of a warpgroup's registers, so that dK and dV have a pass each. That of dK
// may add up dQ in memory beside it.
#pragma once
#include "sm90_backward.h"
#include "sm90_backward_wide_loader.h"

namespace tilewright::kernel {

template <class Config_>
struct Sm90BackwardWide : Sm90Backward<Config_> {
    using Base = Sm90Backward<Config_>;
    using Config = Config_;
    using Tile = BackwardTile<Config>;
    using typename Base::Element;
    using typename Base::Rounded;
    using typename Base::Statistics;
    template <int depth> using Operand = typename Base::template Operand<depth>;
    template <int depth> using Columns = typename Base::template Columns<depth>;
    using Base::over_keys, Base::rows, Base::columns, Base::workers, Base::scored_depth, Base::carried_depth;
    static constexpr bool takes_off(int which) { return which == 0 && Base::takes_off(0); }  // for parts of deltas there is no room
    static constexpr bool gives_scored = Config::gives_scored, gives_carried = Config::gives_carried, gives_queries = gives_scored && Base::gives_queries;
    static constexpr Sm90WideTile wide{rows, columns, scored_depth, carried_depth, Config::stages, over_keys, gives_scored, gives_carried, gives_queries, takes_off(0)};
    static constexpr Sm90WideShared shape = sm90_wide_shared(wide);
    static constexpr int shared_bytes = shape.bytes, buffers = wide.buffers();
    static constexpr bool shares_carried = wide.carried_stages() == 1;  // a step's dO or V comes where the one before it was, and dS after that
    static_assert(!(gives_scored && gives_carried), "dK and dV find registers one at a time");

    // A tile of columns, 0 of what is scored and 1 of what is carried: its buffer, which of their own that is, and how often it has been used.
    struct Buffer {
        int index, stage, parity;
        template <int which>
        static TILEWRIGHT_DEVICE Buffer at(unsigned n) {
            auto ring = hopper::Ring<which ? wide.carried_stages() : Config::stages>::at(n);
            return {which * Config::stages + ring.stage, ring.stage, ring.parity};
        }
    };
    struct Shared {
        unsigned base;
        TILEWRIGHT_DEVICE explicit Shared(char* shared) : base(ptx::shared_address(shared)) {}
        TILEWRIGHT_DEVICE unsigned row_tile(int which) const { return base + which * shape.row_bytes[0]; }
        TILEWRIGHT_DEVICE unsigned buffer(int index) const { return base + shape.buffers + index * shape.buffer_bytes; }
        TILEWRIGHT_DEVICE unsigned statistics(int which, int stage) const {
            return which ? base + shape.deltas + stage * shape.delta_bytes : base + shape.log_sums + stage * shape.log_sum_bytes;
        }
        TILEWRIGHT_DEVICE unsigned factors() const { return base + shape.factors; }
        TILEWRIGHT_DEVICE unsigned barrier(int i) const { return base + shape.barriers + 8 * i; }
        TILEWRIGHT_DEVICE unsigned rows_full(int which) const { return barrier(which); }
        TILEWRIGHT_DEVICE unsigned rows_free(int which) const { return barrier(2 + which); }
        TILEWRIGHT_DEVICE unsigned tile_index() const { return barrier(4); }
        TILEWRIGHT_DEVICE unsigned found_garbage() const { return barrier(5); }  // Sm90KeyGarbage
        TILEWRIGHT_DEVICE unsigned carried_read() const { return barrier(6); }
        TILEWRIGHT_DEVICE unsigned changes_full() const { return barrier(7); }
        TILEWRIGHT_DEVICE unsigned scored_read() const { return barrier(8); }
        TILEWRIGHT_DEVICE unsigned full(int index) const { return barrier(9 + index); }
        TILEWRIGHT_DEVICE unsigned free(int index) const { return barrier(9 + buffers + index); }
        TILEWRIGHT_DEVICE unsigned part_held(int index) const { return barrier(9 + 2 * buffers + index); }
    };

    // dQ of a step is multiplied first of its gradients: there is no room for the dS of two steps. Of what a warp has of it, a half is added from registers
    // beside the product that gives dK, and a half lies where Q was until the copy engine has added it.
    using Sums = typename Base::Sums;
    static constexpr int at_once = Sums::pieces / 2, held_bytes = (Sums::pieces - at_once) * 512;
    static_assert(!gives_queries || (!Sums::by_query && 4 * workers * held_bytes <= shape.buffer_bytes));
    static constexpr bool query_part_lags = false;
    struct QueryGradient {
        TILEWRIGHT_DEVICE void settle() {}
    };
    static TILEWRIGHT_DEVICE void start_query_part(QueryGradient&, NoFragment) {}

    // Where the rings are follows from how many steps and tiles are done.
    struct Pipeline : Sm90Hidden<Config> {
        using Hidden = Sm90Hidden<Config>;
        using Hidden::zeros, Hidden::keys_hold_garbage, Hidden::garbage_in_keys, Hidden::cleaners, Hidden::cleaners_barrier;
        Shared shared;
        unsigned n = 0, tiles = ~0u;
        int worker = __shfl_sync(~0u, (int)threadIdx.x / 128 - 1, 0);

        TILEWRIGHT_DEVICE int next_tile() {
            ++tiles, keys_hold_garbage = false;
            int index;
            ptx::barrier_wait(shared.rows_full(0), tiles & 1);
            ptx::load_shared(index, shared.tile_index());
            __syncwarp();  // all lanes have read it before one releases it
            return __shfl_sync(~0u, index, 0);
        }
        TILEWRIGHT_DEVICE Operand<scored_depth> row_scored() const { return {hopper::operand(shared.row_tile(0) + worker * 64 * 128, rows)}; }
        TILEWRIGHT_DEVICE Operand<carried_depth> row_carried() const {
            if constexpr (gives_scored) ptx::barrier_wait(shared.rows_full(1), tiles & 1);
            __syncwarp();  // a tile without steps has no product between this and what releases the rows
            return {hopper::operand(shared.row_tile(1) + worker * 64 * 128, rows)};
        }
        template <int which, int depth>
        TILEWRIGHT_DEVICE auto column_tile() const {
            Buffer buffer = Buffer::template at<which>(n);
            ptx::barrier_wait(shared.full(buffer.index), buffer.parity);
            Operand<depth> tile{hopper::operand(shared.buffer(buffer.index), columns)};
            if constexpr (takes_off(which)) return Columns<depth>{tile, shared.statistics(which, buffer.stage), shared.factors()};
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
            else return Statistics(shared.statistics(which, over_keys ? Buffer::template at<which>(n).stage : 0));
        }
        TILEWRIGHT_DEVICE auto log_sums(const BackwardStep&) const { return statistics<0>(); }
        TILEWRIGHT_DEVICE auto deltas(const BackwardStep&) const { return statistics<1>(); }
        TILEWRIGHT_DEVICE void release_carried() const {
            // All lanes have read their statistics. Who gives dQ publishes its dS behind a fence, which serves these too.
            if constexpr (gives_queries) __syncwarp();
            else hopper::settle_reads();
            hopper::release(gives_queries ? shared.carried_read() : shared.free(Buffer::template at<1>(n).index));
        }
        TILEWRIGHT_DEVICE void release_scored() {
            if constexpr (!gives_queries) hopper::release(shared.free(Buffer::template at<0>(n).index));
            ++n;
            ptx::forget(n);  // unknown to the compiler, which else keeps what follows from it in registers that are short
        }
        // As in Sm90Backward.
        TILEWRIGHT_DEVICE void release_row_scored(bool last) const { release_rows(0, last); }
        TILEWRIGHT_DEVICE void release_row_carried(bool last) const { release_rows(1, last); }
        TILEWRIGHT_DEVICE void release_rows(int which, bool last) const {
            if constexpr (!over_keys) hopper::settle_reads();
            hopper::release_if<false>(last, shared.rows_free(which));
        }

        // dS^T of this worker's keys, turned, in the place of the dO that all have read: a panel of 64 keys for each worker. When all are there, this worker's
        // columns of dQ = dS K.
        typename Base::QueryGradient part;
        TILEWRIGHT_DEVICE void publish(const Rounded& of_worker) {
            ptx::forget(n);
            if (garbage_in_keys()) Sm90KeyGarbage<Sm90BackwardWide>::hide(shared.row_tile(0));
            unsigned changes = shared.buffer(Buffer::template at<1>(n).index);
            ptx::barrier_wait(shared.carried_read(), n & 1);
            Base::store_turned(changes + worker * columns * 128, of_worker);
            ptx::fence_async();
            __syncwarp();
            hopper::release(shared.changes_full());
            ptx::barrier_wait(shared.changes_full(), n & 1);
            constexpr int column = Sums::width;
            Base::start_query_part(part, {hopper::operand(changes, columns),
                                          hopper::operand(shared.row_tile(0) + worker * (column / panel_columns * rows * 128 + column % panel_columns * 2), rows)});
        }
        TILEWRIGHT_DEVICE NoFragment published() const { return {}; }
        TILEWRIGHT_DEVICE void hold(const QueryGradient&) const {}
        // dK is under way.
        template <class Published, class Held>
        TILEWRIGHT_DEVICE void hand_over(Published, Held, const PlainBackwardParameters& p, const Tile& tile, const BackwardStep& step) {
            int warp = (int)threadIdx.x / 32 - 4;
            Base::template finish<1>(part);
            release_row_scored(step.left == 1);
            hopper::release(shared.free(Buffer::template at<1>(n).index));
            if (step.left > 1 && garbage_in_keys()) Sm90KeyGarbage<Sm90BackwardWide>::restore(p.forward, tile, shared.row_tile(0));
            Sums::template add<at_once>(Base::sums_at(p, Base::place_of(p, tile, step)) + warp * Sums::warp_floats, part);
            ptx::wgmma_wait<0>();
            hopper::release(shared.scored_read());
            ptx::barrier_wait(shared.scored_read(), n & 1);
            int buffer = Buffer::template at<0>(n).index;
            Sums::template put<at_once>(shared.buffer(buffer) + warp * held_bytes, part);
            ptx::fence_async();
            __syncwarp();
            hopper::release(shared.part_held(buffer));
        }

        // As in Sm90Backward. Where there is no dP, nothing tells of dO but itself.
        TILEWRIGHT_DEVICE void hide_garbage() {
            if constexpr (Config::mask != Mask::none) {
                if constexpr (gives_scored) {
                    bool of_keys = false;
                    if (!ptx::named_any(cleaners_barrier, cleaners, !(zeros == 0))) return;
                    (void)Hidden::template clean<sm90_tile_bytes(columns, scored_depth)>(shared.buffer(Buffer::template at<0>(n).index));
                    if constexpr (gives_queries) of_keys = Hidden::template clean<shape.row_bytes[0]>(shared.row_tile(0));
                    ptx::fence_async();
                    keys_hold_garbage |= ptx::named_any(cleaners_barrier, cleaners, of_keys);
                } else {
                    bool found = Hidden::template clean<sm90_tile_bytes(columns, carried_depth)>(shared.buffer(Buffer::template at<1>(n).index));
                    if (found) ptx::fence_async();
                    if (!ptx::named_any(cleaners_barrier, cleaners, found)) return;
                }
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
                if constexpr (gives_queries)
                    for (BackwardStep step = tile.first_step(); step.left > 0; step = tile.next(step)) {
                        float *sums = Base::sums_at(p, Base::place_of(p, tile, step)), nan = __uint_as_float(0x7fc00000);
                        Sm90KeyGarbage<Sm90BackwardWide>::reveal(p.forward, tile, step.first, [&](int place) {
                            ptx::add_four(sums + place / 4 * 4, place % 4 == 0 ? nan : 0, place % 4 == 1 ? nan : 0, place % 4 == 2 ? nan : 0, place % 4 == 3 ? nan : 0);
                        });
                    }
                if constexpr (gives_carried)
                    nvidia::reveal_gradient<Sm90BackwardWide, true, carried_depth>(f, tile, first, 16, p.out_gradient, p.out_gradient_strides, p.value_gradient, p.value_gradient_strides);
                else if constexpr (over_keys)
                    nvidia::reveal_gradient<Sm90BackwardWide, false, scored_depth>(f, tile, first, 16, f.query, f.query_strides, p.key_gradient, p.key_gradient_strides);
                else
                    nvidia::reveal_gradient<Sm90BackwardWide, false, scored_depth>(f, tile, first, 16, f.key, f.key_strides, p.query_gradient, p.query_gradient_strides);
            }
        }
    };

    // Blocks draw tiles until nothing is left.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_tile(const Sm90BackwardArguments& arguments, char* raw_shared, Body&& body) {
        constexpr int released = hopper::releases(4 * workers);
        Shared shared(raw_shared);
        if (threadIdx.x == 0) {
            ptx::store_shared(shared.found_garbage(), 0);
            ptx::barrier_init(shared.carried_read(), released), ptx::barrier_init(shared.changes_full(), released);
            ptx::barrier_init(shared.scored_read(), released);
            for (int i = 0; i < Config::stages; ++i) ptx::barrier_init(shared.part_held(i), released);
            for (int i = 0; i < 2; ++i) ptx::barrier_init(shared.rows_full(i), 1), ptx::barrier_init(shared.rows_free(i), released + (gives_queries && i == 0));
            for (int i = 0; i < buffers; ++i) ptx::barrier_init(shared.full(i), 1), ptx::barrier_init(shared.free(i), gives_queries && i < Config::stages ? 1 : released);
            ptx::barrier_init_done();
        }
        if (takes_off(0) && threadIdx.x < 32) hopper::store_factors(shared.factors());
        __syncthreads();
        hopper::divide_work<workers, 1, sm90_backward_registers_loading>(
            [&] {
                if (threadIdx.x == 0) Sm90WideLoader<Sm90BackwardWide>::load(arguments, shared);
                else if (gives_queries && threadIdx.x == 32) Sm90WideLoader<Sm90BackwardWide>::add_held(arguments.parameters, shared);
            },
            [&] {
                const ForwardParameters& p = arguments.parameters.forward;
                Pipeline pipeline{{}, shared};
                for (int index; (index = pipeline.next_tile()) < p.tiles;) body(backward_tile_at<Config>(p, index), pipeline);
            });
    }
};

}  // namespace tilewright::kernel
