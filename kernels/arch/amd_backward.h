// AMD, backward: the accumulators and products of the forward with other rows and columns. Each tile of columns lies in LDS straight,
// for scores, and transposed, for gradients. `Family` is Cdna, Cdna4, Rdna3 or Rdna4.
#pragma once
#include "../backward_bias.h"
#include "amd_backward_columns.h"
#include "amd_forward.h"

namespace tilewright::kernel {

template <template <class> class Family, class Config_>
struct AmdBackward : amd::Lane {
    using Config = Config_;
    using Element = typename Config::Element;
    using Tile = BackwardTile<Config>;
    static constexpr bool over_keys = Config::over_keys, differentiates = Config::gives_scored || Config::gives_bias;
    static constexpr int rows = Tile::block_rows, columns = Tile::block_columns;
    static constexpr int scored_depth = Config::head_dim, carried_depth = Config::head_dim_v;

    template <int depth>
    struct View {  // the products of this pass as those of a forward
        using Element = typename Config_::Element;
        static constexpr int head_dim = depth, head_dim_v = depth, block_q = rows, block_kv = columns, workers = Config_::workers, stages = 1, slack = 0;
        static constexpr bool overlapped = false, persistent = false, bias = false, paged = false, aligned = Config_::aligned;
        static constexpr Mask mask = Config_::mask;
    };
    template <int depth> using Forward = Family<View<depth>>;
    using Scored = Forward<scored_depth>;
    using Carried = Forward<carried_depth>;
    using Scores = typename Scored::Scores;
    using Rounded = typename Scored::Rounded;
    using ScoredGradient = typename Scored::Output;
    using CarriedGradient = typename Carried::Output;
    using Slopes = typename Choose<Config::softcap, Scores, NoFragment>::type;
    static constexpr AmdBackwardLds lds =
        amd_backward_lds(Scored::needs, Carried::needs, {rows, columns, Config::workers, scored_depth, carried_depth, Config::gives_scored, Config::gives_carried, Config::gives_bias});
    static constexpr int threads = Scored::threads, shared_bytes = lds.bytes;
    static constexpr int probability_lift = Scored::probability_lift;
    template <int depth>
    using Rows = typename Choose<lds.holds_rows, typename Forward<depth>::QueryInLds, typename Forward<depth>::QueryInRegisters>::type;

    struct Arguments {
        BackwardParametersOf<Config> parameters;
    };
    template <int depth>
    struct Operand {  // its depth follows from what it is: its type
        const char *straight, *transposed;
    };
    // What the prologue wrote of the queries, which are columns or rows. A lane's columns are as far apart as the first lane's.
    struct Statistics {
        const TILEWRIGHT_GLOBAL float* x;
        TILEWRIGHT_DEVICE float at(int r, int c) const { return x[over_keys ? Scores::At::column(0, c) : Scores::At::row(0, r)]; }
    };
    template <int depth>
    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, const Rows<depth>& left, Operand<depth> right) {
        Forward<depth>::start_scores(scores, left, right.straight);
    }
    template <class Gradient, int depth>
    static TILEWRIGHT_DEVICE void start_gradient(Gradient& gradient, const Rounded& left, Operand<depth> right) {
        Forward<depth>::start_output(gradient, left, right.transposed);
    }

    // Of the tile's rows, as the forward's queries are asked for.
    template <int depth>
    struct RowSource {
        const Tile& tile;
        const Element* from;  // row 0 of the tile
        long long stride;
        char* to;
        TILEWRIGHT_DEVICE amd::short8 query_piece(int row, int piece) const {
            if (!tile.inside(row)) return amd::short8{};
            return amd::load_piece<depth, Config::aligned>(from + row * stride + piece * 8, piece * 8);
        }
        TILEWRIGHT_DEVICE char* queries_at() const { return to; }
    };

    // Columns are in registers on their way to LDS: two stages, a step ahead; one stage, from when they are asked for.
    struct Pipeline {
        const PlainBackwardParameters& p;
        const Tile& tile;
        char* shared;
        bool cleared = false;  // this thread has read an infinity or NaN of columns that are hidden from some rows as zero
        amd::Courier<Scored, scored_depth, true, Config::gives_scored> scored_columns;
        amd::Courier<Carried, carried_depth, differentiates, Config::gives_carried> carried_columns;

        TILEWRIGHT_DEVICE Pipeline(const PlainBackwardParameters& parameters, const Tile& of, char* memory) : p(parameters), tile(of), shared(memory) {
            if constexpr (Config::stages == 2)
                if (BackwardStep first = of.first_step(); first.left > 0) fetch_scored(first), fetch_carried(first);
        }
        TILEWRIGHT_DEVICE Rows<scored_depth> row_scored() const {
            return Rows<scored_depth>(source<scored_depth>(0, over_keys ? p.forward.key : p.forward.query, over_keys ? p.forward.key_strides : p.forward.query_strides));
        }
        TILEWRIGHT_DEVICE auto row_carried() const {
            if constexpr (!differentiates) return NoFragment{};
            else return Rows<carried_depth>(source<carried_depth>(1, over_keys ? p.forward.value : p.out_gradient, over_keys ? p.forward.value_strides : p.out_gradient_strides));
        }
        TILEWRIGHT_DEVICE Operand<scored_depth> scored(const BackwardStep& step) {
            bool hides = Tile::rows_differ && tile.hides(step);
            if constexpr (Config::stages == 1) fetch_scored(step);
            amd::barrier();  // everyone has read the last
            cleared |= scored_columns.put(shared + lds.straight[0], shared + lds.transposed[0], hides);
            if constexpr (Config::stages == 1) fetch_carried(step);
            cleared |= carried_columns.put(shared + lds.straight[1], shared + lds.transposed[1], hides);
            amd::barrier();
            if constexpr (Config::stages == 2)
                if (BackwardStep ahead = tile.next(step); ahead.left > 0) fetch_scored(ahead), fetch_carried(ahead);
            return {shared + lds.straight[0], shared + lds.transposed[0]};
        }
        TILEWRIGHT_DEVICE Operand<carried_depth> carried(const BackwardStep&) const { return {shared + lds.straight[1], shared + lds.transposed[1]}; }
        TILEWRIGHT_DEVICE Statistics log_sums(const BackwardStep& step) const { return statistics(p.log_sums, step); }
        TILEWRIGHT_DEVICE Statistics deltas(const BackwardStep& step) const { return statistics(p.deltas, step); }
        TILEWRIGHT_DEVICE void release_scored() {}
        TILEWRIGHT_DEVICE void release_carried() {}
        TILEWRIGHT_DEVICE void release_row_scored(bool) {}
        TILEWRIGHT_DEVICE void release_row_carried(bool) {}
        static constexpr bool looks_for_garbage = false;
        TILEWRIGHT_DEVICE void hide_garbage() {}  // what is transposed has none

        // After the rows are stored: what they do see of NaN and infinity. Rare, so simple: a wave goes over its rows again.
        TILEWRIGHT_DEVICE void reveal_garbage(const PlainBackwardParameters&, const Tile&) {
            if constexpr (Tile::rows_differ) {
                if (!amd::any_of_block<Scored>(cleared, (unsigned*)shared)) return;
                __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent");  // other lanes stored what this one loads
                const ForwardParameters& f = p.forward;
                auto hidden = [&](int head, int row, int column) { return bias_hides<AmdBackward>(f, tile, head, row, column); };
                if constexpr (!over_keys) {
                    amd::reveal_gradient<Scored, false, scored_depth, Element>(tile, hidden, f.key, f.key_strides, p.query_gradient, p.query_gradient_strides);
                } else {
                    if constexpr (Config::gives_scored) amd::reveal_gradient<Scored, false, scored_depth, Element>(tile, hidden, f.query, f.query_strides, p.key_gradient, p.key_gradient_strides);
                    if constexpr (Config::gives_carried)
                        amd::reveal_gradient<Carried, true, carried_depth, Element>(tile, hidden, p.out_gradient, p.out_gradient_strides, p.value_gradient, p.value_gradient_strides);
                }
            }
        }

    private:
        TILEWRIGHT_DEVICE void fetch_scored(const BackwardStep& step) {
            const ForwardParameters& f = p.forward;
            scored_columns.template fetch<Config::aligned>((const Element*)(over_keys ? f.query : f.key), over_keys ? f.query_strides : f.key_strides, tile.column_batch(), step.head,
                                                           step.first, tile.columns);
        }
        TILEWRIGHT_DEVICE void fetch_carried(const BackwardStep& step) {
            const ForwardParameters& f = p.forward;
            carried_columns.template fetch<Config::aligned>((const Element*)(over_keys ? p.out_gradient : f.value), over_keys ? p.out_gradient_strides : f.value_strides,
                                                            tile.column_batch(), step.head, step.first, tile.columns);
        }
        template <int depth>
        TILEWRIGHT_DEVICE RowSource<depth> source(int which, const void* base, const Strides& strides) const {
            return {tile, row_of((const Element*)base, strides, tile.batch, tile.head, tile.first_row), strides.row, shared + lds.row[which]};
        }
        TILEWRIGHT_DEVICE Statistics statistics(const TILEWRIGHT_GLOBAL float* of, const BackwardStep& step) const {
            int head = over_keys ? step.head : tile.head, query = over_keys ? step.first + Scores::column(0) : tile.first_row + Scores::row(0);
            return {of + tile.statistics_place(p, head, query)};
        }
    };

    // The bias's gradient: a block does one tile, part by part.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_index(const Arguments&, Body&& body) { body((int)__builtin_amdgcn_workgroup_id_x()); }
    template <class Body>
    static TILEWRIGHT_DEVICE void walk(const Arguments& arguments, char* shared, const Tile& tile, Body&& body) {
        Pipeline pipeline(arguments.parameters, tile, shared);
        body(pipeline);
    }
    static constexpr int spread_rows = Config::workers, spread_columns = Scored::wave;
    static TILEWRIGHT_DEVICE int first_spread_row() { return amd::thread() / Scored::wave; }
    static TILEWRIGHT_DEVICE int first_spread_column() { return Scored::lane(); }
    static TILEWRIGHT_DEVICE const float* spread(Scores& sum, char* shared) {
        float* to = (float*)shared;
        amd::barrier();  // everyone has read the last columns
        TILEWRIGHT_UNROLL for (int r = 0; r < Scores::rows; ++r) TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c) to[Scores::row(r) * columns + Scores::column(c)] = sum.at(r, c);
        amd::barrier();
        return to;
    }
    static TILEWRIGHT_DEVICE void store_element(Element* to, float x) { amd::store_global(to, (short)amd::pack(Element(), x, 0.0f)); }
    static TILEWRIGHT_DEVICE float element_at(const Element* from) { return amd::float_at(from); }

    // A block does one tile.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_tile(const Arguments& arguments, char* shared, Body&& body) {
        Tile tile = backward_tile_at<Config>(arguments.parameters, __builtin_amdgcn_workgroup_id_x());
        Pipeline pipeline(arguments.parameters, tile, shared);
        body(tile, pipeline);
    }
};

}  // namespace tilewright::kernel
