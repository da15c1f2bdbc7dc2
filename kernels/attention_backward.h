// Exact attention, backward. With P = exp(S - lse), recomputed from the forward's log-sums, and D = rowsum(dO * O) - dLSE:
//   dV = P^T dO,   dP = dO V^T,   dS = P * (dP - D),   dK = scale dS^T Q,   dQ = scale dS K.
// A pass over keys gives dK and dV, a pass over queries dQ. They are one text, whose scores have the owned tile's members as
// rows: P and dS (or their transposes) are left operands without being turned. Or the pass over keys gives dQ too (Config::dq): each
// tile's part of it is added to sums in memory, which an epilogue scales and rounds.
#pragma once
#include "backward_bias.h"
#include "variants.h"

namespace tilewright::kernel {

// Every element, in the order that asks for each of the queries' statistics once: over keys they belong to columns. Where nobody asks, from the last on:
// what is rounded of two lies in the place of one, so that it meets nothing that is still wanted.
template <class Config, class Fragment, class Statistics, class Body>
TILEWRIGHT_DEVICE void for_each_element(const Statistics&, Body&& body) {
    if constexpr (Same<Statistics, TakenOff>::is) {
        TILEWRIGHT_UNROLL for (int c = Fragment::columns - 1; c >= 0; --c) TILEWRIGHT_UNROLL for (int r = 0; r < Fragment::rows; ++r) body(r, c);
    } else if constexpr (Config::over_keys) {
        TILEWRIGHT_UNROLL for (int c = 0; c < Fragment::columns; ++c) TILEWRIGHT_UNROLL for (int r = 0; r < Fragment::rows; ++r) body(r, c);
    } else {
        TILEWRIGHT_UNROLL for (int r = 0; r < Fragment::rows; ++r) TILEWRIGHT_UNROLL for (int c = 0; c < Fragment::columns; ++c) body(r, c);
    }
}

// Columns of both a tile and the statistics are vectors or floats; a row's position or a column's is the query's or the key's. What a bias hides
// becomes -1, which no probability is, until clear_marked().
template <class Arch, class Fragment, class Statistics, class Slopes>
TILEWRIGHT_DEVICE void recompute_probabilities(Fragment& scores, Slopes& slopes, const PlainBackwardParameters& p, const BackwardTile<typename Arch::Config>& tile,
                                               const BackwardStep& step, const Statistics& log_sums) {
    using Config = typename Arch::Config;
    using Value = typename Arch::Value;
    constexpr bool over_keys = Config::over_keys;
    const ForwardParameters& forward = p.forward;
    constexpr bool bends = Config::softcap || Config::bias || Config::alibi;
    float alibi = Config::alibi ? forward.slope[over_keys ? step.head : tile.head] : 0, natural_scale = scale_beside(forward, log_sums), scale = bends ? natural_scale : natural_scale * log2_of_e;
    for_each_element<Config, Fragment>(log_sums, [&](int r, int c) {
        Value score = scores.at(r, c) * scale;
        if constexpr (Config::softcap) {
            Value bent = tanh<Arch>(Value(score * (1.0f / forward.softcap)));
            slopes.at(r, c) = 1.0f - bent * bent;
            score = bent * forward.softcap;
        }
        Value bias{};
        if constexpr (Config::bias) bias = bias_of<Arch>(forward, tile, step, scores.row(r), scores.column(c)), score += bias;
        if constexpr (Config::alibi) score -= Arch::to_float(Arch::distance(scores.column(c) + step.first, tile.first_row + scores.row(r) + tile.offset)) * alibi;
        // Positive only because a log-sum was rounded: no probability may be above 1 for that.
        Value exponent = natural_log_sums<Config> ? less(score, log_sums, r, c) * log2_of_e : less(bends ? Value(score * log2_of_e) : score, log_sums, r, c);
        scores.at(r, c) = Arch::exp2_at_most_one(exponent);
        if constexpr (Config::bias) scores.at(r, c) = Arch::select(bias == -infinity, Arch::broadcast(-1.0f), scores.at(r, c));
    });
}

// dP -> dS, or with a softcap `of_products` that of the scaled product.
template <class Config, bool of_products = true, class Fragment, class Slopes, class Statistics>
TILEWRIGHT_DEVICE void differentiate(Fragment& changes, Fragment& probabilities, Slopes& slopes, const Statistics& deltas) {
    for_each_element<Config, Fragment>(deltas, [&](int r, int c) {
        changes.at(r, c) = probabilities.at(r, c) * less(changes.at(r, c), deltas, r, c);
        if constexpr (Config::softcap && of_products) changes.at(r, c) *= slopes.at(r, c);
    });
}
// Where a bias hides: 0 * NaN is NaN.
template <class Arch, class Fragment>
TILEWRIGHT_DEVICE void clear_marked(Fragment& x, Fragment& probabilities) {
    for_each_element<typename Arch::Config, Fragment>(NoFragment{}, [&](int r, int c) { x.at(r, c) = Arch::select(probabilities.at(r, c) < 0.0f, Arch::broadcast(0.0f), x.at(r, c)); });
}

template <class Arch, class Fragment>
TILEWRIGHT_DEVICE void clear_hidden(Fragment& x, const BackwardTile<typename Arch::Config>& tile, const BackwardStep& step) {
    TILEWRIGHT_UNROLL for (int r = 0; r < Fragment::rows; ++r) {
        int row = x.row(r), begin = tile.paired_begin(row) - step.first, end = tile.paired_end(row) - step.first;
        TILEWRIGHT_UNROLL for (int c = 0; c < Fragment::columns; ++c) {
            auto column = x.column(c);
            x.at(r, c) = Arch::select(tile.paired(column, begin, end), x.at(r, c), Arch::broadcast(0.0f));
        }
    }
}

// Products that flush small operands get probabilities times this.
template <class Arch> constexpr float lift = 1 << Arch::probability_lift;
template <class Arch, class Fragment>
TILEWRIGHT_DEVICE void lift_probabilities(Fragment& scores) {
    TILEWRIGHT_UNROLL for (int r = 0; r < Fragment::rows; ++r) TILEWRIGHT_UNROLL for (int c = 0; c < Fragment::columns; ++c) scores.at(r, c) *= lift<Arch>;
}
// What a step adds to dQ, on architectures that know how.
template <bool gives, class Arch> struct QueryPart {
    using Fragment = typename Arch::QueryGradient;
    static constexpr bool lags = Arch::query_part_lags;  // a step multiplies that of the step before
};
template <class Arch> struct QueryPart<false, Arch> {
    using Fragment = NoFragment;
    static constexpr bool lags = false;
};

template <class Arch>
TILEWRIGHT_DEVICE void backward_pass(const typename Arch::Arguments& arguments, char* shared) {
    using Config = typename Arch::Config;
    using Tile = BackwardTile<Config>;
    using Element = typename Config::Element;
    using Scores = typename Arch::Scores;
    constexpr bool over_keys = Config::over_keys, gives_scored = Config::gives_scored, gives_carried = Config::gives_carried, gives_queries = over_keys && gives_scored && Config::dq != 0;
    using Part = QueryPart<gives_queries, Arch>;
    // Where P is zero dS is, unless dP is not finite, and then neither is dS: who looks for that clears one of the two. It costs registers that some have not.
    constexpr bool looks = Arch::Pipeline::looks_for_garbage;
    const PlainBackwardParameters& p = arguments.parameters;

    Arch::for_each_tile(arguments, shared, [&](const Tile& tile, typename Arch::Pipeline& pipeline) {
        Scores scores, changes;                // S, then P; dP, then dS (or their transposes)
        typename Arch::Slopes slopes;          // d score / d (scale * dot), where a softcap makes it differ from 1
        typename Arch::Rounded left_p, left_ds;
        typename Arch::ScoredGradient scored_gradient;    // dK or dQ
        typename Arch::CarriedGradient carried_gradient;  // dV
        if constexpr (gives_scored) scored_gradient.clear();
        if constexpr (gives_carried) carried_gradient.clear();

        // Of the rows, "scored" is K or Q, whose product with the columns' Q or K is S; "carried" is V or dO, whose product
        // with the columns' dO or V is dP.
        auto row_scored = pipeline.row_scored();
        auto row_carried = pipeline.row_carried();
        BackwardStep step = tile.first_step();
        pipeline.release_row_scored(step.left == 0);
        if constexpr (gives_scored) pipeline.release_row_carried(step.left == 0);
        // dQ may lag by a step, so that no worker waits for what another has yet to publish of dS.
        auto take_step = [&](auto has_previous) {
            typename Part::Fragment query_part;
            const bool masked = tile.needs_mask(step);
            auto scored = pipeline.scored(step);
            auto log_sums = pipeline.log_sums(step);
            Arch::start_scores(scores, row_scored, scored);
            auto carried = pipeline.carried(step);
            if constexpr (gives_scored) Arch::start_scores(changes, row_carried, carried);
            Arch::template finish<gives_scored ? 1 : 0>(scores);
            if constexpr (looks)
                if (masked) pipeline.look_for_garbage(scores);
            recompute_probabilities<Arch>(scores, slopes, p, tile, step, log_sums);
            if constexpr (!gives_queries) pipeline.release_row_scored(step.left == 1);  // and log-sums of rows
            if (looks && masked) clear_hidden<Arch>(scores, tile, step);
            if constexpr (gives_scored) {
                Arch::template finish<0>(changes);
                differentiate<Config>(changes, scores, slopes, pipeline.deltas(step));
                pipeline.release_row_carried(step.left == 1);  // and deltas of rows
                if constexpr (!gives_carried) pipeline.release_carried();  // it was for dP alone
            }
            if (masked) {
                if constexpr (!looks) clear_hidden<Arch>(scores, tile, step);
                if constexpr (looks && gives_scored) {
                    if (pipeline.finds_garbage(changes)) clear_hidden<Arch>(changes, tile, step);
                } else if constexpr (gives_scored) {
                    clear_hidden<Arch>(changes, tile, step);
                }
            }
            if constexpr (Config::bias && gives_scored) clear_marked<Arch>(changes, scores);
            if constexpr (Config::bias) clear_marked<Arch>(scores, scores);
            if constexpr (gives_carried && Arch::probability_lift > 0) lift_probabilities<Arch>(scores);
            if constexpr (gives_carried) left_p.assign(scores);
            if constexpr (gives_scored) left_ds.assign(changes);
            if (tile.hides(step)) pipeline.hide_garbage();  // 0 * NaN is NaN; after rounding, which frees registers
            if constexpr (gives_queries) {
                pipeline.publish(left_ds);
                if constexpr (decltype(has_previous)::is) Arch::start_query_part(query_part, pipeline.published());
            }
            if constexpr (gives_carried) Arch::start_gradient(carried_gradient, left_p, carried);
            if constexpr (gives_scored) Arch::start_gradient(scored_gradient, left_ds, scored);
            if constexpr (gives_queries) {
                constexpr int others = gives_carried ? 2 : 1;  // dV and dK are under way
                if constexpr (decltype(has_previous)::is) Arch::template finish<others>(query_part), pipeline.hold(query_part);
                pipeline.hand_over(Constant<true>(), has_previous, p, tile, step);
            }
            if constexpr (gives_scored) Arch::template finish<0>(scored_gradient);
            if constexpr (gives_carried) Arch::template finish<0>(carried_gradient);
            if constexpr (gives_carried) pipeline.release_carried();
            pipeline.release_scored();
            step = tile.next(step);
        };
        if constexpr (Part::lags) {
            if (step.left > 0) {
                take_step(Constant<false>());
                while (step.left > 0) take_step(Constant<true>());
                typename Arch::QueryGradient query_part;
                Arch::start_query_part(query_part, pipeline.published());
                Arch::template finish<0>(query_part);
                pipeline.release_row_scored(true);
                pipeline.hold(query_part), pipeline.hand_over(Constant<false>(), Constant<true>(), p, tile, step);
            }
        } else {
            while (step.left > 0) take_step(Constant<false>());
        }

        if constexpr (gives_scored) {
            void* gradient = over_keys ? p.key_gradient : p.query_gradient;
            const Strides& strides = over_keys ? p.key_gradient_strides : p.query_gradient_strides;
            TILEWRIGHT_UNROLL for (int r = 0; r < Arch::ScoredGradient::rows; ++r) {
                int row = scored_gradient.row(r);
                scored_gradient.store_row(r, p.forward.scale, row_of((Element*)gradient, strides, tile.batch, tile.head, tile.first_row + row), tile.inside(row));
            }
        }
        if constexpr (gives_carried) {
            TILEWRIGHT_UNROLL for (int r = 0; r < Arch::CarriedGradient::rows; ++r) {
                int row = carried_gradient.row(r);
                Element* to = row_of((Element*)p.value_gradient, p.value_gradient_strides, tile.batch, tile.head, tile.first_row + row);
                carried_gradient.store_row(r, 1 / lift<Arch>, to, tile.inside(row));
            }
        }
        pipeline.reveal_garbage(p, tile);
    });
}

template <class Arch>
TILEWRIGHT_DEVICE void attention_backward_keys(const typename Arch::Arguments& arguments, char* shared) { backward_pass<Arch>(arguments, shared); }
template <class Arch>
TILEWRIGHT_DEVICE void attention_backward_keys_alone(const typename Arch::Arguments& arguments, char* shared) { backward_pass<Arch>(arguments, shared); }
template <class Arch>
TILEWRIGHT_DEVICE void attention_backward_values_alone(const typename Arch::Arguments& arguments, char* shared) { backward_pass<Arch>(arguments, shared); }
template <class Arch>
TILEWRIGHT_DEVICE void attention_backward_queries(const typename Arch::Arguments& arguments, char* shared) { backward_pass<Arch>(arguments, shared); }

}  // namespace tilewright::kernel
