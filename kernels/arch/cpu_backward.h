// The CPU, backward: one thread owns a whole tile; 16-bit elements become floats when they are copied to scratch.
#pragma once
#include "../backward_bias.h"
#include "cpu.h"
#include "cpu_query_sums.h"

namespace tilewright::kernel {
namespace cpu {

// `depth` floats of each of `members` rows or columns, in scratch.
template <int depth, int members, class Tile>
struct BackwardOperand {
    const float *straight, *turned;  // [members][round_up(depth, lanes)], [depth][members]
    const Tile* tile;
    BackwardStep step;
    const ForwardParameters* forward;
    bool finite;  // otherwise 0 * infinity must be kept from rows that the column is hidden from
};

}  // namespace cpu

template <class Config_>
struct CpuBackward : cpu::Lane {
    using Config = Config_;
    using Element = typename Config::Element;
    using Tile = BackwardTile<Config>;
    static constexpr bool over_keys = Config::over_keys, gives_queries = over_keys && Config::dq != 0;
    static constexpr int rows = Tile::block_rows, columns = Tile::block_columns;
    static constexpr int scored_depth = Config::head_dim, carried_depth = Config::head_dim_v;
    static constexpr int scored_width = round_up(scored_depth, cpu::lanes), carried_width = round_up(carried_depth, cpu::lanes);
    static constexpr CpuBackwardScratch scratch = cpu_backward_scratch(scored_depth, carried_depth, rows, columns, cpu::lanes, gives_queries);
    static_assert(columns % cpu::lanes == 0 && (!gives_queries || rows % cpu::lanes == 0), "tiles must be multiples of the vector width");
    static constexpr int sum_columns = backward_sum_columns(Config::head_dim);

    struct Arguments {
        BackwardParametersOf<Config> parameters;
    };
    using Scores = cpu::Accumulator<Element, rows, columns, columns>;
    using ScoredGradient = cpu::Accumulator<Element, rows, scored_width, scored_depth>;
    using CarriedGradient = cpu::Accumulator<Element, rows, carried_width, carried_depth>;
    using Rounded = cpu::InPlace<Scores>;
    using QueryGradient = NoFragment;  // goes to the sums at once
    static constexpr bool query_part_lags = false;
    using Slopes = typename Choose<Config::softcap, Scores, NoFragment>::type;
    template <int depth> using Operand = cpu::BackwardOperand<depth, columns, Tile>;

    // What the prologue wrote of the queries, which are columns or rows.
    struct Statistics {
        const float* x;
        TILEWRIGHT_DEVICE cpu::Vector at(int r, int c) const {
            if constexpr (over_keys) return *(const cpu::Vector*)(x + c * cpu::lanes);
            else return cpu::broadcast(x[r]);
        }
    };

    template <int depth>
    static TILEWRIGHT_DEVICE void start_scores(Scores& scores, const float* row_operand, const Operand<depth>& column_operand) {
        cpu::multiply<rows, columns, depth, false, columns, round_up(depth, cpu::lanes)>(scores.d, row_operand, column_operand.turned);
    }
    template <class Gradient, int depth>
    static TILEWRIGHT_DEVICE void start_gradient(Gradient& gradient, const Rounded& left, const Operand<depth>& operand) {
        constexpr int width = round_up(depth, cpu::lanes);
        const BackwardStep& step = operand.step;
        if (operand.finite || !operand.tile->hides(step)) return cpu::multiply<rows, width, columns, true>(gradient.d, left.left, operand.straight);
        for (int r = 0; r < rows; ++r) {
            int begin = operand.tile->paired_begin(r) - step.first, end = operand.tile->paired_end(r) - step.first, head = over_keys ? step.head : operand.tile->head;
            cpu::multiply_paired<width, columns, true>(gradient.d + r * width, left.left + r * columns, operand.straight, [&](int k) {
                return k >= begin && k < end && !bias_hides<CpuBackward>(*operand.forward, *operand.tile, head, r, step.first + k);
            });
        }
    }
    static TILEWRIGHT_DEVICE void start_query_part(QueryGradient&, NoFragment) {}
    template <int pending, class Fragment> static TILEWRIGHT_DEVICE void finish(Fragment&) {}

    // Copies tiles into scratch as the products want them, when they are asked for.
    struct Pipeline {
        const PlainBackwardParameters& p;
        char* scratch_bytes;
        const Tile& tile;
        bool keys_finite = true;

        TILEWRIGHT_DEVICE float* space(long long offset) const { return (float*)(scratch_bytes + offset); }
        TILEWRIGHT_DEVICE long long statistics_of(const BackwardStep& step) const {
            return tile.statistics_place(p, over_keys ? step.head : tile.head, over_keys ? step.first : tile.first_row);
        }
        const float* row_scored() {
            float* to = space(scratch.row_scored);
            if constexpr (over_keys) keys_finite = copy_rows<scored_depth>(to, p.forward.key, p.forward.key_strides);
            else copy_rows<scored_depth>(to, p.forward.query, p.forward.query_strides);
            return to;
        }
        const float* row_carried() const {
            float* to = space(scratch.row_carried);
            if constexpr (over_keys) copy_rows<carried_depth>(to, p.forward.value, p.forward.value_strides);
            else copy_rows<carried_depth>(to, p.out_gradient, p.out_gradient_strides);
            return to;
        }
        Operand<scored_depth> scored(const BackwardStep& step) const {
            if constexpr (over_keys) return copy_columns<scored_depth>(scratch.scored, scratch.scored_turned, step, p.forward.query, p.forward.query_strides);
            else return copy_columns<scored_depth>(scratch.scored, scratch.scored_turned, step, p.forward.key, p.forward.key_strides);
        }
        Operand<carried_depth> carried(const BackwardStep& step) const {
            if constexpr (over_keys) return copy_columns<carried_depth>(scratch.carried, scratch.carried_turned, step, p.out_gradient, p.out_gradient_strides);
            else return copy_columns<carried_depth>(scratch.carried, scratch.carried_turned, step, p.forward.value, p.forward.value_strides);
        }
        TILEWRIGHT_DEVICE Statistics log_sums(const BackwardStep& step) const { return {p.log_sums + statistics_of(step)}; }
        TILEWRIGHT_DEVICE Statistics deltas(const BackwardStep& step) const { return {p.deltas + statistics_of(step)}; }
        void release_row_scored(bool) const {}
        void release_row_carried(bool) const {}
        static constexpr bool looks_for_garbage = false;
        void hide_garbage() const {}  // start_gradient looks after it
        void reveal_garbage(const PlainBackwardParameters&, const Tile&) const {}
        void release_scored() const {}
        void release_carried() const {}

        // This step's part of dQ: dS^T K, of which dS^T is written to scratch.
        void publish(const Rounded& changes) const { cpu::turn_tile<rows, columns>(space(scratch.changes_turned), changes.left); }
        NoFragment published() const { return {}; }
        void hold(const QueryGradient&) const {}
        template <class Published, class Held>
        void hand_over(Published, Held, const PlainBackwardParameters&, const Tile&, const BackwardStep& step) const {
            if constexpr (Published::is) {
                long long row = statistics_of(step);
                float* sums = p.query_sums + row * sum_columns;
                unsigned *turn = p.turns + row / columns, earlier = (unsigned)tile.earlier(step.first);
                cpu::await_turn(turn, earlier);
                if (earlier == 0) add_query_part<false>(sums, step);
                else add_query_part<true>(sums, step);
                cpu::give_turn(turn);
            }
        }
        template <bool accumulate>
        void add_query_part(float* sums, const BackwardStep& step) const {
            const float *changes = space(scratch.changes_turned), *keys = space(scratch.row_scored);
            if (keys_finite || !tile.hides(step)) return cpu::multiply<columns, scored_width, rows, accumulate, sum_columns>(sums, changes, keys);
            for (int c = 0; c < columns; ++c) {
                int column = step.first + c;
                cpu::multiply_paired<scored_width, rows, accumulate>(sums + c * sum_columns, changes + c * rows, keys, [&](int r) {
                    return column >= tile.paired_begin(r) && column < tile.paired_end(r) && !bias_hides<CpuBackward>(p.forward, tile, step.head, r, column);
                });
            }
        }

        // [rows][round_up(depth, lanes)]; zeros past the end. Whether all are finite.
        template <int depth>
        bool copy_rows(float* to, const void* base, const Strides& strides) const {
            constexpr int width = round_up(depth, cpu::lanes);
            cpu::Vector zeros{};  // 0 * x is NaN where x is not finite
            for (int r = 0; r < rows; ++r) {
                const Element* from = tile.inside(r) ? row_of((const Element*)base, strides, tile.batch, tile.head, tile.first_row + r) : nullptr;
                for (int c = 0; c < width; c += cpu::lanes) {
                    cpu::Vector x = cpu::load(from, c, depth);
                    zeros += 0 * x;
                    *(cpu::Vector*)(to + r * width + c) = x;
                }
            }
            return cpu::Lane::row_sum(zeros) == 0;
        }
        template <int depth>
        Operand<depth> copy_columns(long long straight, long long turned, const BackwardStep& step, const void* base, const Strides& strides) const {
            constexpr int width = round_up(depth, cpu::lanes), lanes = cpu::lanes;
            float *to = space(straight), *to_turned = space(turned);
            cpu::Vector zeros{};  // 0 * x is NaN where x is not finite
            for (int first = 0; first < columns; first += lanes)
                for (int c = 0; c < width; c += lanes) {
                    cpu::Vector x[lanes];
                    TILEWRIGHT_REGISTERS for (int i = 0; i < lanes; ++i) {
                        int column = step.first + first + i;
                        x[i] = cpu::load(column < tile.columns ? row_of((const Element*)base, strides, tile.column_batch(), step.head, column) : nullptr, c, depth);
                        zeros += 0 * x[i];
                        *(cpu::Vector*)(to + (first + i) * width + c) = x[i];
                    }
                    cpu::turn(x);
                    int count = min_of(lanes, depth - c);
                    if (count == lanes) {
                        TILEWRIGHT_REGISTERS for (int i = 0; i < lanes; ++i) *(cpu::Vector*)(to_turned + (c + i) * columns + first) = x[i];
                    } else {
                        for (int i = 0; i < count; ++i) *(cpu::Vector*)(to_turned + (c + i) * columns + first) = x[i];
                    }
                }
            return {to, to_turned, &tile, step, &p.forward, cpu::Lane::row_sum(zeros) == 0};
        }
    };

    // Threads draw tiles until none is left.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_tile(const Arguments& arguments, char* scratch_bytes, Body&& body) {
        deal(arguments, [&](int i) {
            Tile tile = backward_tile_at<Config>(arguments.parameters, i);
            Pipeline pipeline{arguments.parameters, scratch_bytes, tile};
            body(tile, pipeline);
        });
    }
    // The bias's gradient is dealt by its own tiles.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_index(const Arguments& arguments, Body&& body) { deal(arguments, body); }
    template <class Body>
    static TILEWRIGHT_DEVICE void walk(const Arguments& arguments, char* scratch_bytes, const Tile& tile, Body&& body) {
        Pipeline pipeline{arguments.parameters, scratch_bytes, tile};
        body(pipeline);
    }
    static constexpr int spread_rows = 1, spread_columns = 1;
    static TILEWRIGHT_DEVICE int first_spread_row() { return 0; }
    static TILEWRIGHT_DEVICE int first_spread_column() { return 0; }
    static TILEWRIGHT_DEVICE const float* spread(const Scores& sum, char*) { return sum.d; }
    static TILEWRIGHT_DEVICE void store_element(Element* to, float x) { *to = cpu::rounded(Element(), x); }
    static TILEWRIGHT_DEVICE float element_at(const Element* from) { return cpu::to_float(*from); }

    // The prologue's tiles are blocks of padded queries of one head; the sinks' are heads.
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_query(const Arguments& arguments, Body&& body) {
        const PlainBackwardParameters& p = arguments.parameters;
        int blocks = p.padded_queries / backward_query_block, heads = p.forward.heads_q;
        deal(arguments, [&](int i) {
            int first = i % blocks * backward_query_block;
            for (int query = first; query < first + backward_query_block; ++query) body(i / blocks / heads, i / blocks % heads, query);
        });
    }
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_head(const Arguments& arguments, Body&& body) { deal(arguments, body); }

    static constexpr int columns_at_once = cpu::lanes;
    static TILEWRIGHT_DEVICE bool leads_row() { return true; }
    static TILEWRIGHT_DEVICE cpu::Vector values_at(const float* from) { return *(const cpu::Vector*)from; }
    static TILEWRIGHT_DEVICE float sum_of_sharers(float x) { return x; }
    static TILEWRIGHT_DEVICE void store_statistics(const PlainBackwardParameters& p, long long row, float log_sum, float delta) { p.log_sums[row] = log_sum, p.deltas[row] = delta; }
    // The sums of dQ: the first tile of keys stores, and adds to nothing; where none has, nobody is seen.
    static TILEWRIGHT_DEVICE void clear_query_sums(const PlainBackwardParameters& p, long long row) {
        if (row % Config::block_q == 0) p.turns[row / Config::block_q] = 0;
    }
    static void store_query_sums(const PlainBackwardParameters& p, long long row, Element* to) {
        bool seen = p.turns[row / Config::block_q] != 0;
        const float* sums = p.query_sums + row * sum_columns;
        for (int c = 0; c < Config::head_dim; ++c) to[c] = cpu::rounded(Element(), seen ? sums[c] * p.forward.scale : 0);
    }
    template <int count>
    static TILEWRIGHT_DEVICE float dot(const Element* a, const Element* b) {
        cpu::Vector sum{};
        for (int c = 0; c < count; c += cpu::lanes) sum += cpu::load(a, c, count) * cpu::load(b, c, count);
        return row_sum(sum);
    }

private:
    template <class Body>
    static TILEWRIGHT_DEVICE void deal(const Arguments& arguments, Body&& body) {
        const ForwardParameters& p = arguments.parameters.forward;
        for (int i; (i = __atomic_fetch_add(p.tiles_dealt, 1u, __ATOMIC_RELAXED)) < p.tiles;) body(i);
    }
};

}  // namespace tilewright::kernel
