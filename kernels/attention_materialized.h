// The standard baseline: scores written to memory, softmax over them, second product. What tiling is compared with.
#pragma once
#include "attention.h"

namespace tilewright::kernel {

// Three launches; `phase` says which. The score matrix is float32, whole, and lives in memory between them.
template <class Arch>
struct Materialized {
    using Config = typename Arch::Config;
    using Value = typename Arch::Value;
    const ForwardParameters& p;
    const Tile<Config>& tile;

    // A tile's rows are queries of one head: packing heads is for the tiled kernel.
    TILEWRIGHT_DEVICE float* score_row(int row) const {
        return p.scores + (((long long)tile.batch * p.heads_q + tile.head) * p.seq_q + min_of(tile.query(row), p.seq_q - 1)) * p.seq_kv;
    }

    // Where the matrix unit takes small probabilities for zero they are lifted for its product.
    static constexpr float lifted = (float)(1 << Arch::probability_lift);

    // Columns past the end repeat the last key's score: hide() or a zero in P's place must follow.
    template <class Scores>
    TILEWRIGHT_DEVICE void load_scores(Scores& scores, int kv) const {
        TILEWRIGHT_UNROLL for (int r = 0; r < Scores::rows; ++r) {
            const fp32* row = (const fp32*)score_row(scores.row(r));
            TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c)
                scores.at(r, c) = Arch::gather(row, 1, scores.column(c) + kv * Config::block_kv, p.seq_kv);
        }
    }
    template <class Scores>
    TILEWRIGHT_DEVICE void load_visible(Scores& scores, int kv) const {
        load_scores(scores, kv);
        hide<Arch>(scores, tile, kv * Config::block_kv);
    }
    template <class Scores>
    TILEWRIGHT_DEVICE void load_probabilities(Scores& scores, int kv) const {
        load_scores(scores, kv);
        TILEWRIGHT_UNROLL for (int r = 0; r < Scores::rows; ++r)
            TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c)
                scores.at(r, c) = Arch::select(scores.column(c) < p.seq_kv - kv * Config::block_kv, scores.at(r, c) * lifted, Arch::broadcast(0));
    }
    template <class Scores>
    TILEWRIGHT_DEVICE void store_scores(Scores& scores, int kv) const {
        TILEWRIGHT_UNROLL for (int r = 0; r < Scores::rows; ++r)
            TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c)
                if (tile.inside(scores.row(r)))
                    Arch::scatter(score_row(scores.row(r)), scores.column(c) + kv * Config::block_kv, p.seq_kv, scores.at(r, c));
    }

    TILEWRIGHT_DEVICE void write_scores(typename Arch::Pipeline& pipeline) const {
        typename Arch::Scores scores;
        auto query = pipeline.query();
        for (int kv = tile.kv_end - 1; kv >= tile.kv_begin; --kv) {
            Arch::start_scores(scores, query, pipeline.keys());
            Arch::template finish<0>(scores), pipeline.release_keys();
            if (kv == tile.kv_begin) pipeline.release_query();
            if constexpr (rescores<Config>) rescore<Arch>(scores, p, tile, kv * Config::block_kv);
            store_scores(scores, kv);
            pipeline.values(), pipeline.release_values();  // pipelines alternate between keys and values
        }
        if (tile.kv_end <= tile.kv_begin) pipeline.release_query();
    }

    // Once over the scores for maxima and sums, once more to turn them into probabilities.
    TILEWRIGHT_DEVICE void normalise() const {
        typename Arch::Scores scores;
        OnlineSoftmax<Arch, Arch::Scores::rows> softmax(rescores<Config> ? log2_of_e : p.scale * log2_of_e);
        for (int kv = tile.kv_end - 1; kv >= tile.kv_begin; --kv) load_visible(scores, kv), softmax.update(scores);
        RowResult results[Arch::Scores::rows];
        TILEWRIGHT_UNROLL for (int r = 0; r < Arch::Scores::rows; ++r) {
            int row = scores.row(r);
            results[r] = finish_row<Arch>(p, softmax.maximum[r], softmax.total(r), tile.head);
            if (p.lse && tile.inside(row) && scores.leads_row())
                p.lse[((long long)tile.batch * p.heads_q + tile.head) * p.seq_q + tile.query(row)] = results[r].log_sum;
        }
        for (int kv = tile.kv_end - 1; kv >= tile.kv_begin; --kv) {
            load_visible(scores, kv);
            softmax.update(scores);  // maxima are final: only the exponentials
            TILEWRIGHT_UNROLL for (int r = 0; r < Arch::Scores::rows; ++r)
                TILEWRIGHT_UNROLL for (int c = 0; c < Arch::Scores::columns; ++c) scores.at(r, c) *= results[r].factor;
            store_scores(scores, kv);
        }
    }

    TILEWRIGHT_DEVICE void write_output(typename Arch::Pipeline& pipeline) const {
        using Element = typename Config::Element;
        typename Arch::Scores scores;
        typename Arch::Rounded probabilities;
        typename Arch::Output output;
        output.clear();
        pipeline.query(), pipeline.release_query();
        for (int kv = tile.kv_end - 1; kv >= tile.kv_begin; --kv) {
            pipeline.keys(), pipeline.release_keys();
            load_probabilities(scores, kv);
            probabilities.assign(scores);
            Arch::start_output(output, probabilities, pipeline.values());
            Arch::template finish<0>(output), pipeline.release_values();
        }
        TILEWRIGHT_UNROLL for (int r = 0; r < Arch::Output::rows; ++r) {
            int row = output.row(r);
            output.store_row(r, 1.0f / lifted, row_of((Element*)p.out, p.out_strides, tile.batch, tile.head, tile.query(row)), tile.inside(row));
        }
    }
};

template <class Arch>
TILEWRIGHT_DEVICE void attention_materialized(const typename Arch::Arguments& arguments, char* shared) {
    const ForwardParameters& p = arguments.parameters;
    Arch::for_each_tile(arguments, shared, [&](const Tile<typename Arch::Config>& tile, typename Arch::Pipeline& pipeline) {
        Materialized<Arch> work{p, tile};
        if (p.phase == 0) work.write_scores(pipeline);
        else if (p.phase == 1) work.normalise();
        else work.write_output(pipeline);
    });
}

}  // namespace tilewright::kernel
