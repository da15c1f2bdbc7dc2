// NVIDIA sm_80 and later, backward: products by warps that own 16 rows or more each; rows once and columns in a ring by cp.async.
#pragma once
#include "../backward_bias.h"
#include "fma.h"
#include "nvidia_backward_garbage.h"
#include "sm80_copy.h"

namespace tilewright::kernel {

template <class Config_>
struct Sm80Backward : nvidia::Common {
    using Config = Config_;
    using Element = typename Config::Element;
    using Tile = BackwardTile<Config>;
    static constexpr bool over_keys = Config::over_keys;
    static constexpr int rows = Tile::block_rows, columns = Tile::block_columns, stages = Config::stages, workers = Config::workers, threads = 32 * workers;
    static constexpr int scored_depth = Config::head_dim, carried_depth = Config::head_dim_v;
    static constexpr Sm80BackwardShared shape = sm80_backward_shared({rows, columns, scored_depth, carried_depth, (int)sizeof(Element), stages, workers, over_keys,
                                                                      Config::gives_scored, Config::gives_carried, Config::softcap, Config::gives_bias});
    static constexpr int shared_bytes = shape.bytes;

    struct Arguments {
        BackwardParametersOf<Config> parameters;
    };
    template <int depth>
    struct View {  // the products of this pass as those of a forward
        using Element = typename Config_::Element;
        static constexpr int head_dim = depth, head_dim_v = depth, block_q = rows, block_kv = columns, workers = Config_::workers;
        static constexpr bool aligned = Config_::aligned;
    };
    template <int depth> using Products = WarpProducts<View<depth>>;
    using Scores = typename Products<scored_depth>::Scores;
    using Rounded = typename Products<scored_depth>::Rounded;
    using ScoredGradient = typename Products<scored_depth>::Output;
    using CarriedGradient = typename Products<carried_depth>::Output;
    using Slopes = typename Choose<Config::softcap, Scores, NoFragment>::type;

    // What the prologue wrote of the queries, which are columns or rows.
    struct Statistics {
        float x[over_keys ? Scores::columns : Scores::rows];
        TILEWRIGHT_DEVICE float at(int r, int c) const { return x[over_keys ? c : r]; }
    };
    template <int depth>
    struct Operand {  // its depth follows from what it is: its type
        unsigned at;
    };
    template <int depth>
    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, Operand<depth> left, Operand<depth> right) {
        Products<depth>::start_scores(scores, left.at, right.at);
    }
    template <class Gradient, int depth>
    static TILEWRIGHT_DEVICE void start_gradient(Gradient& gradient, const Rounded& left, Operand<depth> right) {
        Products<depth>::start_output(gradient, left, right.at);
    }
    template <int pending, class Fragment>
    static TILEWRIGHT_DEVICE void finish(Fragment&) {}  // the products are synchronous

    // Every step's copies are a group, an empty one past the last step. A stage is refilled after the barrier of the next step, when
    // every warp is done with it.
    struct Pipeline {
        const PlainBackwardParameters& p;
        unsigned shared;
        const Tile& tile;
        BackwardStep ahead;           // the next to be copied
        int filled = 0, stage = -1;   // the stages that it goes to, and that are being read
        bool found_garbage = false;   // in some columns that are hidden from a part of the rows
        Statistics of_rows[2];

        TILEWRIGHT_DEVICE Pipeline(const PlainBackwardParameters& parameters, char* raw_shared, const Tile& of)
            : p(parameters), shared(ptx::shared_address(raw_shared)), tile(of), ahead(of.first_step()) {
            const ForwardParameters& f = p.forward;
            copy_tile<rows, scored_depth>(shape.row[0], over_keys ? f.key : f.query, over_keys ? f.key_strides : f.query_strides, tile.batch, tile.head, tile.first_row, tile.rows);
            if constexpr (Config::gives_scored || Config::gives_bias)
                copy_tile<rows, carried_depth>(shape.row[1], over_keys ? f.value : p.out_gradient, over_keys ? f.value_strides : p.out_gradient_strides, tile.batch, tile.head,
                                               tile.first_row, tile.rows);
            if constexpr (!over_keys) {  // in braces: NVRTC drops what follows a loop with a pragma under a false `if constexpr`
                TILEWRIGHT_UNROLL for (int r = 0; r < Scores::rows; ++r) {
                    long long row = tile.statistics_place(p, tile.head, tile.first_row + Scores::row(r));
                    of_rows[0].x[r] = p.log_sums[row], of_rows[1].x[r] = p.deltas[row];
                }
            }
            TILEWRIGHT_UNROLL for (int i = 0; i < stages; ++i) copy_columns();
        }
        TILEWRIGHT_DEVICE Operand<scored_depth> row_scored() const { return {shared + shape.row[0]}; }
        TILEWRIGHT_DEVICE Operand<carried_depth> row_carried() const { return {shared + shape.row[1]}; }
        TILEWRIGHT_DEVICE Operand<scored_depth> scored(const BackwardStep&) {
            bool first = stage < 0;
            stage = first || stage + 1 == stages ? 0 : stage + 1;
            if constexpr (stages == 1) {
                if (!first) __syncthreads(), copy_columns();
                ptx::copies_wait<0>();
                __syncthreads();
            } else {
                ptx::copies_wait<stages - 2>();
                __syncthreads();
                if (!first) copy_columns();
            }
            return {shared + at_stage(shape.column[0])};
        }
        TILEWRIGHT_DEVICE Operand<carried_depth> carried(const BackwardStep&) const { return {shared + at_stage(shape.column[1])}; }
        TILEWRIGHT_DEVICE Statistics log_sums(const BackwardStep&) const { return statistics(0); }
        TILEWRIGHT_DEVICE Statistics deltas(const BackwardStep&) const { return statistics(1); }
        TILEWRIGHT_DEVICE void release_scored() {}
        TILEWRIGHT_DEVICE void release_carried() {}
        TILEWRIGHT_DEVICE void release_row_scored(bool) {}
        TILEWRIGHT_DEVICE void release_row_carried(bool) {}

        static constexpr bool looks_for_garbage = false;
        TILEWRIGHT_DEVICE void hide_garbage() {
            if constexpr (Tile::rows_differ) {
                __syncthreads();  // no warp reads the columns for its scores any more
                bool found = false;
                if constexpr (Config::gives_scored) found |= clean<scored_depth>(shape.column[0]);
                if constexpr (Config::gives_carried) found |= clean<carried_depth>(shape.column[1]);
                found_garbage |= __syncthreads_or(found);
            }
        }
        // After the rows are stored: what they do see of NaN and infinity.
        TILEWRIGHT_DEVICE void reveal_garbage(const PlainBackwardParameters&, const Tile&) const {
            if constexpr (Tile::rows_differ) {
                if (!found_garbage) return;
                const ForwardParameters& f = p.forward;
                constexpr int count = rows / workers;
                int first = (int)threadIdx.x / 32 * count;
                if constexpr (!over_keys) {
                    nvidia::reveal_gradient<Sm80Backward, false, scored_depth>(f, tile, first, count, f.key, f.key_strides, p.query_gradient, p.query_gradient_strides);
                } else {
                    if constexpr (Config::gives_scored)
                        nvidia::reveal_gradient<Sm80Backward, false, scored_depth>(f, tile, first, count, f.query, f.query_strides, p.key_gradient, p.key_gradient_strides);
                    if constexpr (Config::gives_carried)
                        nvidia::reveal_gradient<Sm80Backward, true, carried_depth>(f, tile, first, count, p.out_gradient, p.out_gradient_strides, p.value_gradient,
                                                                                    p.value_gradient_strides);
                }
            }
        }

    private:
        TILEWRIGHT_DEVICE int at_stage(int offset) const { return offset + stage * shape.stage_bytes; }
        TILEWRIGHT_DEVICE Statistics statistics(int which) const {
            if constexpr (!over_keys) return of_rows[which];
            Statistics s;
            TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c) ptx::load_shared(s.x[c], shared + at_stage(shape.statistics[which]) + 4 * Scores::column(c));
            return s;
        }
        // Of a head, `count` members from `first` on, of which those before `end` exist.
        template <int count, int depth>
        TILEWRIGHT_DEVICE void copy_tile(int to, const void* base, const Strides& strides, int batch, int head, int first, int end) const {
            const Element* from = row_of((const Element*)base, strides, batch, head, first);
            nvidia::copy_rows<Config, count, depth, threads>(shared + to, end - first, [&](int i) { return from + i * strides.row; });
        }
        TILEWRIGHT_DEVICE void copy_columns() {
            if (ahead.left > 0) {
                const ForwardParameters& f = p.forward;
                int at = filled * shape.stage_bytes;
                copy_tile<columns, scored_depth>(shape.column[0] + at, over_keys ? f.query : f.key, over_keys ? f.query_strides : f.key_strides, tile.column_batch(), ahead.head, ahead.first, tile.columns);
                copy_tile<columns, carried_depth>(shape.column[1] + at, over_keys ? p.out_gradient : f.value, over_keys ? p.out_gradient_strides : f.value_strides, tile.column_batch(), ahead.head,
                                                  ahead.first, tile.columns);
                if constexpr (over_keys) {
                    long long from = tile.statistics_place(p, ahead.head, ahead.first);
                    for (int i = threadIdx.x; i < columns / 2; i += threads) {
                        int which = i / (columns / 4), piece = i % (columns / 4);
                        ptx::copy16(shared + shape.statistics[which] + at + 16 * piece, (which ? p.deltas : p.log_sums) + from + 4 * piece, true);
                    }
                }
                ahead = tile.next(ahead);
                filled = filled + 1 == stages ? 0 : filled + 1;
            }
            ptx::copies_commit();
        }
        template <int depth>
        TILEWRIGHT_DEVICE bool clean(int columns_at) const {
            constexpr int pieces = sm80_row_pieces(depth, sizeof(Element));
            unsigned from = shared + at_stage(columns_at);
            return nvidia::clean<Element, columns * pieces, threads>(threadIdx.x, [&](int i) { return from + nvidia::place<pieces>(i / pieces, i % pieces); });
        }
    };

    // The bias's gradient: a block does one tile, part by part.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_index(const Arguments&, Body&& body) { body((int)blockIdx.x); }
    template <class Body>
    static TILEWRIGHT_DEVICE void walk(const Arguments& arguments, char* shared, const Tile& tile, Body&& body) {
        Pipeline pipeline(arguments.parameters, shared, tile);
        body(pipeline);
        __syncthreads();  // every warp is done with what the next part, or the sum, is written over
    }
    static constexpr int spread_rows = workers, spread_columns = 32;
    static TILEWRIGHT_DEVICE int first_spread_row() { return (int)threadIdx.x / 32; }
    static TILEWRIGHT_DEVICE int first_spread_column() { return (int)threadIdx.x % 32; }
    static TILEWRIGHT_DEVICE const float* spread(Scores& sum, char* shared) {
        float* to = (float*)shared;
        TILEWRIGHT_UNROLL for (int r = 0; r < Scores::rows; ++r) TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c) to[Scores::row(r) * columns + Scores::column(c)] = sum.at(r, c);
        __syncthreads();
        return to;
    }
    static TILEWRIGHT_DEVICE void store_element(Element* to, float x) { *to = nvidia::rounded(Element(), x); }
    static TILEWRIGHT_DEVICE float element_at(const Element* from) { return kernel::to_float(*from); }

    // A block does one tile.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_tile(const Arguments& arguments, char* shared, Body&& body) {
        Tile tile = backward_tile_at<Config>(arguments.parameters, blockIdx.x);
        Pipeline pipeline(arguments.parameters, shared, tile);
        body(tile, pipeline);
        ptx::copies_wait<0>();  // of a tile that is paired with nothing the rows may be on their way
    }
};

}  // namespace tilewright::kernel
