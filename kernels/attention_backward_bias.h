// The gradient of the bias, dBias = dS. A tile of it is summed over the broadcast dimensions by whoever owns it: no element is written
// twice, and sums have one order.
#pragma once
#include "attention_backward.h"

namespace tilewright::kernel {

// Adds dS of the tile's rows and columns.
template <class Arch>
TILEWRIGHT_DEVICE void add_score_gradients(const BackwardParameters& p, const BackwardTile<typename Arch::Config>& tile, typename Arch::Pipeline& pipeline, typename Arch::Scores& sum) {
    using Config = typename Arch::Config;
    using Scores = typename Arch::Scores;
    auto row_scored = pipeline.row_scored();
    auto row_carried = pipeline.row_carried();
    for (BackwardStep step = tile.first_step(); step.left > 0; step = tile.next(step)) {
        Scores scores, changes;
        typename Arch::Slopes slopes;  // not used: the bias comes after the softcap
        auto scored = pipeline.scored(step);
        Arch::start_scores(scores, row_scored, scored);
        auto carried = pipeline.carried(step);
        Arch::start_scores(changes, row_carried, carried);
        Arch::template finish<1>(scores);
        recompute_probabilities<Arch>(scores, slopes, p, tile, step, pipeline.log_sums(step));
        Arch::template finish<0>(changes);
        differentiate<Config, false>(changes, scores, slopes, pipeline.deltas(step));
        if (tile.needs_mask(step)) clear_hidden<Arch>(changes, tile, step);
        clear_marked<Arch>(changes, scores);
        TILEWRIGHT_UNROLL for (int r = 0; r < Scores::rows; ++r) {
            bool inside = tile.inside(scores.row(r));
            TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c) sum.at(r, c) = sum.at(r, c) + (inside ? changes.at(r, c) : Arch::broadcast(0.0f));
        }
        pipeline.release_carried(), pipeline.release_scored();
    }
}

template <class Arch>
TILEWRIGHT_DEVICE void attention_backward_bias(const typename Arch::Arguments& arguments, char* shared) {
    using Config = typename Arch::Config;
    using Element = typename Config::Element;
    using Owned = BiasGradientTile<Config>;
    const BackwardParameters& p = arguments.parameters;
    Arch::for_each_index(arguments, [&](int index) {
        Owned owned(p, index);
        typename Arch::Scores sum;
        sum.clear();
        for (int i = 0; i < owned.parts(); ++i) {
            auto part = owned.part(p.forward, i);
            if (part.steps > 0) Arch::walk(arguments, shared, part, [&](typename Arch::Pipeline& pipeline) { add_score_gradients<Arch>(p, part, pipeline, sum); });
        }
        const float* whole = Arch::spread(sum, shared);  // [block_rows][block_columns]
        bool sums_rows = p.bias_gradient_strides.row == 0, sums_columns = p.bias_gradient_column_stride == 0;
        for (int row = Arch::first_spread_row(); row < owned.rows; row += Arch::spread_rows) {
            Element* to = row_of((Element*)p.bias_gradient, p.bias_gradient_strides, owned.batch, owned.head, owned.row_block * Owned::block_rows + row);
            for (int column = Arch::first_spread_column(); column < owned.columns; column += Arch::spread_columns) {
                float total = 0;
                for (int r = row; r < (sums_rows ? Owned::block_rows : row + 1); ++r) {
                    float of_row = 0;
                    for (int c = column; c < (sums_columns ? Owned::block_columns : column + 1); ++c) of_row += whole[r * Owned::block_columns + c];
                    total += of_row;
                }
                Arch::store_element(to + (owned.column_block * Owned::block_columns + column) * p.bias_gradient_column_stride, total);
            }
        }
    });
}

}  // namespace tilewright::kernel
