// NVIDIA sm_90a, backward: what a persistent pass over keys does row by row: of heads to come the statistics that it reads, of heads whose keys are all
// done dQ. Two warps of the loading warpgroup (in a fixed order one) do it beside the products, and when there are no more of these, all; the prologue has done the first heads.
#pragma once
#include "../attention_backward_rows.h"
#include "sm90_query_sums.h"
#include "sm90_statistics.h"

namespace tilewright::kernel {

// Of one warp. For an Sm90Backward that gives dQ.
template <class Arch>
struct Sm90BackwardRows {
    using Config = typename Arch::Config;
    using Element = typename Arch::Element;
    using Sums = typename Arch::Sums;
    using Counts = hopper::RowCounts;
    static constexpr int bytes = Arch::shape.by_rows_bytes, row_bytes = 2 * Arch::carried_depth, part_bytes = 4 * Sums::warp_floats;
    static constexpr int at_once = 16, pitch = row_bytes + 16;  // queries, and bytes from one's row to the next
    static constexpr int parts_of_place = 4 * Arch::workers, parts = min_of(parts_of_place, 1 << log2_of(bytes / part_bytes));
    static_assert(2 * at_once * pitch <= bytes && parts > 0 && parts_of_place % parts == 0 && Sums::width % 32 == 0);

    unsigned buffer, full;  // shared memory of `bytes`, and its barrier
    unsigned copies = 0;    // that have landed there

    // Of the loading warps; the last ones do it, but for those that a counting thread is in.
    static TILEWRIGHT_DEVICE void work(const PlainBackwardParameters& p, const typename Arch::Shared& shared) {
        int warp = (int)threadIdx.x / 32 - (4 - sm90_warps_by_rows);
        if (warp < Arch::counting_threads - 1) return;
        Sm90BackwardRows rows{shared.by_rows(warp), shared.by_rows_full(warp)};
        rows.prepare(p), rows.round(p);
    }
    // Of the consumers, in the place of tiles and dS, when all are done with these.
    static TILEWRIGHT_DEVICE void help(const PlainBackwardParameters& p, const typename Arch::Shared& shared) {
        ptx::fence_async();
        Arch::Pipeline::meet();
        int warp = (int)threadIdx.x / 32 - 4;
        if ((warp + 1) * bytes <= Arch::shape.statistics) Sm90BackwardRows{shared.base + warp * bytes, shared.by_rows_full(sm90_warps_by_rows + warp)}.round(p);
    }

    static TILEWRIGHT_DEVICE int lane() { return (int)threadIdx.x % 32; }
    static TILEWRIGHT_DEVICE int group(const PlainBackwardParameters& p) { return p.forward.heads_q / p.forward.heads_kv; }
    static TILEWRIGHT_DEVICE int blocks(const PlainBackwardParameters& p) { return p.padded_queries / backward_query_block; }  // of a head's queries
    static TILEWRIGHT_DEVICE unsigned draw(unsigned* from) {
        unsigned drawn = 0;
        if (lane() == 0) drawn = atomicInc(from, ~0u);
        return __shfl_sync(~0u, drawn, 0);
    }
    // Of one thread, before a tile of keys of that head.
    static TILEWRIGHT_DEVICE void await_prepared(const PlainBackwardParameters& p, int kv_head) {
        if (kv_head >= p.prepared_heads && p.padded_queries > 0) ptx::await_count(Counts(p).prepared(kv_head), group(p) * blocks(p));
    }

    // What the prologue does, until all blocks of queries are drawn.
    TILEWRIGHT_DEVICE void prepare(const PlainBackwardParameters& p) {
        while (p.padded_queries > 0) {
            unsigned block = p.prepared_heads * group(p) * blocks(p) + draw(Counts(p).to_prepare());
            int of_all = (int)block / blocks(p), batch = of_all / p.forward.heads_q, head = of_all - batch * p.forward.heads_q;
            if (batch >= p.forward.batch) return;
            int first = ((int)block - of_all * blocks(p)) * backward_query_block;
            _Pragma("unroll 1") for (int end = first + backward_query_block; first < end; first += at_once) find_statistics(p, batch, head, first);
            ptx::forget(block);
            clear_sums(p, block);
            ptx::fence_async_memory();
            __syncwarp();
            if (lane() == 0) ptx::give_turn(Counts(p).prepared((int)block / blocks(p) / group(p)));
        }
    }
    // The rows of outputs and of their gradients are copied side by side, and multiplied all with all: what is wanted lies on the diagonal.
    TILEWRIGHT_DEVICE void find_statistics(const PlainBackwardParameters& p, int batch, int head, int first) {
        const ForwardParameters& f = p.forward;
        {
            PaddedQuery<Config> at(p, batch, first + lane() % at_once);
            bool reads = lane() < at_once && at.inside() && at.sees_keys(f);
            int rows = __popc(__ballot_sync(~0u, reads));
            if (lane() == 0) ptx::barrier_expect(full, 2 * rows * row_bytes);
            __syncwarp();
            if (reads) {
                unsigned to = buffer + lane() * pitch;
                ptx::copy_bytes(to, row_of((const Element*)f.out, f.out_strides, at.batch, head, at.query), row_bytes, full);
                ptx::copy_bytes(to + at_once * pitch, row_of((const Element*)p.out_gradient, p.out_gradient_strides, at.batch, head, at.query), row_bytes, full);
            }
        }
        ptx::barrier_wait(full, copies++ & 1);
        _Pragma("unroll 1") for (int eight = 0; eight < at_once; eight += 8) {
            float products[4] = {};
            // Eight rows of either, 16 columns at a time; rows that are not there are zeros.
            unsigned from = buffer + lane() / 16 * at_once * pitch + (eight + lane() % 8) * pitch + lane() / 8 % 2 * 16;
            _Pragma("unroll 1") for (int k = 0; k < row_bytes; k += 32) {
                unsigned x[4];
                ptx::load_matrices(x, from + k);
                if (row_bytes % 32 != 0 && k + 32 > row_bytes) x[1] = x[3] = 0;
                unsigned left[4] = {x[0], 0, x[1], 0};
                ptx::mma(Element(), products, left, x + 2);
            }
            int own = lane() / 4;  // of the eight, of the lane that has its product with itself
            if (lane() % 4 != own / 2) continue;
            PaddedQuery<Config> at(p, batch, first + eight + own);
            float dot = at.inside() && at.sees_keys(f) ? own % 2 ? products[1] : products[0] : 0;
            long long row = ((long long)batch * f.heads_q + head) * p.padded_queries + first + eight + own;
            hopper::store_statistics<Config>(p, row, at.log_sum(f, head), at.delta(p, head, dot));
        }
        hopper::settle_reads();  // of the rows
    }
    static TILEWRIGHT_DEVICE void clear_sums(const PlainBackwardParameters& p, unsigned block) {
        if constexpr (Arch::ordered) {  // the first stores, and adds to nothing
            constexpr int places = backward_query_block / Arch::columns * Arch::workers;
            if (lane() < places) p.turns[block * places + lane()] = 0;
        } else {
            constexpr int floats = backward_query_block * backward_sum_columns(Arch::scored_depth);
            float* sums = p.query_sums + (long long)block * floats;
            _Pragma("unroll 4") for (int i = lane() * 4; i < floats; i += 128) *(float4*)(sums + i) = float4{};
        }
    }

    // What the epilogue does, until all queries are drawn; waits for their keys.
    TILEWRIGHT_DEVICE void round(const PlainBackwardParameters& p) {
        while (p.padded_queries > 0) {
            unsigned place = draw(Counts(p).to_round());
            int places = p.padded_queries / Arch::columns, of_all = (int)place / places, batch = of_all / p.forward.heads_q, first = ((int)place - of_all * places) * Arch::columns;
            if (batch >= p.forward.batch) return;
            if (lane() == 0) ptx::await_count(Counts(p).added(of_all / group(p)), (p.forward.seq_kv + Arch::rows - 1) / Arch::rows * Arch::counting_threads);
            __syncwarp();
            bool nobody = Arch::ordered && __ldcg(p.turns + place * Arch::workers) == 0;  // has stored what is there
            Element* to = row_of((Element*)p.query_gradient, p.query_gradient_strides, batch, of_all - batch * p.forward.heads_q, first);
            _Pragma("unroll 1") for (int part = 0; part < parts_of_place; part += parts) {
                if (lane() == 0) {
                    ptx::barrier_expect(full, parts * part_bytes);
                    ptx::copy_bytes(buffer, Arch::sums_at(p, (int)place) + part * Sums::warp_floats, parts * part_bytes, full);
                }
                ptx::barrier_wait(full, copies++ & 1);
                _Pragma("unroll 1") for (int i = 0; i < parts; ++i) store_part(p, to, first, part + i, buffer + i * part_bytes, nobody);
                hopper::settle_reads();
            }
        }
    }
    // 16 queries and some columns; a lane takes eight columns of a row at a time, of 32 in all.
    static TILEWRIGHT_DEVICE void store_part(const PlainBackwardParameters& p, Element* to, int first, int part, unsigned from, bool nobody) {
        int row = lane() % 16 / 2, column = lane() / 16 * 16 + lane() % 2 * 8 + (Sums::by_query ? 0 : part / 4 * Sums::width), query = (Sums::by_query ? part : part % 4) * 16 + row;
        from += lane() / 16 * 1024 + row * 64 + lane() % 2 * 8 + row / 2 * 16;  // its first four floats' first two
        TILEWRIGHT_UNROLL for (int half = 0; half < 2; ++half) TILEWRIGHT_UNROLL for (int c = 0; c < Sums::width; c += 32) {
            unsigned x[4];
            TILEWRIGHT_UNROLL for (int four = 0; four < 4; ++four) {
                float2 two;
                ptx::load_shared(two, (from ^ four * 16) + (c / 8 + half) * 512);
                x[four] = nobody ? 0 : ptx::pack(Element(), two.x * p.forward.scale, two.y * p.forward.scale);
            }
            if (first + query + half * 8 < p.forward.seq_q && column + c < Arch::scored_depth)
                ptx::store_global(to + (long long)(query + half * 8) * p.query_gradient_strides.row + column + c, x);
        }
    }
};

}  // namespace tilewright::kernel
