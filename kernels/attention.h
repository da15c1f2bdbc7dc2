// Exact attention, O = softmax(scale Q K^T) V, of one tile of queries, without ever writing the scores to memory.
// The algorithm is here, once; what an architecture adds is in arch/ (docs/architecture.md lists the operations).
#pragma once
#include "online_softmax.h"
#include "tile/tile.h"
#include "variants.h"

namespace tilewright::kernel {

template <class Arch, class Fragment>
TILEWRIGHT_DEVICE void hide(Fragment& scores, const Tile<typename Arch::Config>& tile, int first_key) {
    constexpr bool has_begin = Arch::Config::mask == Mask::window;
    TILEWRIGHT_UNROLL for (int r = 0; r < Fragment::rows; ++r) {
        int row = scores.row(r);
        Arch::template hide_row<has_begin>(scores, r, tile.visible_begin(row) - first_key, tile.visible_end(row) - first_key);
    }
}

template <class Fragment>
TILEWRIGHT_DEVICE void scale_rows(Fragment& output, const float (&factor)[Fragment::rows]) {
    TILEWRIGHT_UNROLL for (int r = 0; r < Fragment::rows; ++r)
        TILEWRIGHT_UNROLL for (int c = 0; c < Fragment::columns; ++c) output.at(r, c) *= factor[r];
}

// The tile's rows attend to its KV tiles, from the last to the first.
template <class Arch, class Softmax>
TILEWRIGHT_DEVICE void attend(const ForwardParameters& p, const Tile<typename Arch::Config>& tile, typename Arch::Pipeline& pipeline, Softmax& softmax,
                              typename Arch::Output& output) {
    using Config = typename Arch::Config;
    auto query = pipeline.query();
    int kv = tile.kv_end - 1, first = tile.kv_begin;
    auto release_scored = [&] {
        pipeline.release_keys();
        if (!Arch::stores_through_query && kv == first) pipeline.release_query();
    };
    auto weigh = [&](auto& part) {  // scores of KV tile kv, or of its first half -> probabilities
        if constexpr (rescores<Config>) rescore<Arch>(part, p, tile, kv * Config::block_kv);
        if (tile.needs_mask(kv)) hide<Arch>(part, tile, kv * Config::block_kv);
        return softmax.update(part);
    };
    auto do_one = [&](auto& part, auto& rounded, bool in_turn) {  // one thing after another
        if (in_turn) pipeline.take_turn();
        Arch::start_scores(part, query, pipeline.keys());
        if (in_turn) pipeline.pass_turn();
        Arch::template finish<0>(part), release_scored();
        if (weigh(part)) scale_rows(output, softmax.correction);
        rounded.assign(part);
        Arch::start_output(output, rounded, pipeline.values());
        Arch::template finish<0>(output), pipeline.release_values();
    };

    typename Arch::Scores scores;          // S = Q K^T for one KV tile, then P before rounding
    typename Arch::Rounded probabilities;  // P as the operand of the second product
    bool halved = false;
    if constexpr (Arch::halves) {
        if (kv >= first && tile.last_keys <= Config::block_kv / 2) {
            typename Arch::HalfScores half_scores{scores};
            typename Arch::HalfRounded half_probabilities;
            do_one(half_scores, half_probabilities, !Config::overlapped || short_of_space<Config> || kv > first);
            if (--kv < first) return;
            halved = true;
        }
    }
    if (kv < first) {
        if (!Arch::stores_through_query) pipeline.release_query();
    } else if constexpr (!Config::overlapped) {
        for (; kv >= first; --kv) do_one(scores, probabilities, true);
    } else {  // the next tile's scores are computed while this tile's output is accumulated
        if constexpr (short_of_space<Config>) pipeline.take_turn();
        Arch::start_scores(scores, query, pipeline.keys());
        if constexpr (short_of_space<Config>) pipeline.pass_turn();
        Arch::template finish<0>(scores), release_scored();
        if (weigh(scores) && halved) scale_rows(output, softmax.correction);  // else output is zero
        probabilities.assign(scores);
        for (--kv; kv >= first; --kv) {
            pipeline.take_turn();
            Arch::start_scores(scores, query, pipeline.keys());
            Arch::start_output(output, probabilities, pipeline.values());
            pipeline.pass_turn();
            Arch::template finish<1>(scores), release_scored();
            bool corrected = weigh(scores);
            if constexpr (short_of_space<Config>) {
                Arch::template finish<0>(output);
                if (corrected) scale_rows(output, softmax.correction);
            } else if (p.tiles > 0) {  // always: a wait in either branch is not moved up among the exponentials, and one branch is all warps'
                Arch::template finish<0>(output);
                if (corrected) scale_rows(output, softmax.correction);
            } else {
                Arch::template finish<0>(output);
            }
            pipeline.release_values();
            probabilities.assign(scores);
        }
        Arch::start_output(output, probabilities, pipeline.values());
        Arch::template finish<0>(output), pipeline.release_values();
    }
}

// What a row has become: the factor that normalises its output, and its log-sum with the sink, if any.
struct RowResult {
    float factor, log_sum;
};
template <class Arch>
TILEWRIGHT_DEVICE RowResult finish_row(const ForwardParameters& p, float maximum, float total, int head) {
    using Config = typename Arch::Config;
    bool empty = total == 0;  // NaN compares unequal: only a row that saw nothing is empty
    RowResult result{empty ? 0.0f : Arch::reciprocal(total), empty ? -infinity : log_sum<Arch>(maximum, total, rescores<Config> ? 1.0f : p.scale)};
    if constexpr (Config::sink) {
        float sink = p.sink[head], log_sum = result.log_sum, most = log_sum > sink ? log_sum : sink;
        float parts = Arch::exp2((log_sum - most) * log2_of_e) + Arch::exp2((sink - most) * log2_of_e);
        result.log_sum = most == -infinity ? most : most + Arch::log2(parts) * log_of_2;
        if (!empty) result.factor *= Arch::exp2((log_sum - result.log_sum) * log2_of_e);
    }
    return result;
}

template <class Arch, class Softmax>
TILEWRIGHT_DEVICE RowResult finish_row(const ForwardParameters& p, const Tile<typename Arch::Config>& tile, const Softmax& softmax, int r, int row) {
    return finish_row<Arch>(p, softmax.maximum[r], softmax.total(r), tile.inside(row) ? tile.head_of(row) : tile.head);
}

// Stores `row` of the tile: `write` is told where the output goes and whether the row exists.
template <class Arch, class Write>
TILEWRIGHT_DEVICE void store_row(const ForwardParameters& p, const Tile<typename Arch::Config>& tile, int row, float log_sum, Write&& write) {
    using Element = typename Arch::Config::Element;
    bool inside = tile.inside(row);
    int query = tile.query(row), head = inside ? tile.head_of(row) : tile.head;
    write(row_of((Element*)p.out, p.out_strides, tile.batch, head, query), inside);
    if (p.lse && inside && Arch::Output::leads_row()) p.lse[tile.lse_place(p, head, query)] = log_sum;
}

template <class Arch, class Softmax>
TILEWRIGHT_DEVICE void store(const ForwardParameters& p, const Tile<typename Arch::Config>& tile, const Softmax& softmax, typename Arch::Output& output) {
    TILEWRIGHT_UNROLL for (int r = 0; r < Arch::Output::rows; ++r) {
        RowResult result = finish_row<Arch>(p, tile, softmax, r, output.row(r));
        store_row<Arch>(p, tile, output.row(r), result.log_sum, [&](auto* to, bool inside) { output.store_row(r, result.factor, to, inside); });
    }
}

}  // namespace tilewright::kernel
