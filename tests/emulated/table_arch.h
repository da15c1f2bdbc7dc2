// An architecture that is nothing but a layout table: it knows where elements are from kernels/arch/layouts.h, and what the
// instruction does to registers from tests/isa. If the two disagree, attention comes out wrong. For fp32, which rounds nothing.
#pragma once
#include <cmath>

#include "fibers.h"
#include "isa/instructions.h"
#include "kernels/arch/lane.h"
#include "kernels/tile/accumulator.h"

namespace tilewright::emulated {

// `exchanged`: the instruction gets the right operand as A and the left one as B, and computes the transposed product.
template <class Layout_, class Instruction_, bool exchanged_>
struct Table {
    using Layout = Layout_;
    using Instruction = Instruction_;
    static constexpr bool exchanged = exchanged_;
};

template <class Config_, class Table>
struct TableArch : kernel::FloatLane {
    using Config = Config_;
    using Element = kernel::fp32;
    using Layout = typename Table::Layout;
    using Instruction = typename Table::Instruction;
    using Left = typename Layout::Left;
    static constexpr int warp = Left::table.lanes, threads = warp * Config::workers, shared_bytes = 1;
    static constexpr int m = Layout::m, n = Layout::n, k = Layout::k, strips = Config::block_q / Config::workers / m;
    static constexpr int key_dim = kernel::round_up(Config::head_dim, k), value_dim = kernel::round_up(Config::head_dim_v, n);
    static_assert(Config::block_q % (Config::workers * m) == 0 && Config::block_kv % k == 0 && Config::block_kv % n == 0);

    static float max(float a, float b) { return std::fmax(a, b); }
    static float exp2(float x) { return std::exp2(x); }
    static float log2(float x) { return std::log2(x); }
    static bool any(bool x) { return ballot(x) != 0; }
    template <int pending, class Fragment>
    static void finish(Fragment&) {}

    template <class Join>
    static float over_row(float x, Join join) {
        for (int bit = 1; bit < warp; bit *= 2)
            if (kernel::reduction_lanes(Layout::Accumulator::table) & bit) x = join(x, from_lane(x, lane() ^ bit));
        return x;
    }
    static float row_max(float x) { return over_row(x, max); }
    static float row_sum(float x) {
        return over_row(x, [](float a, float b) { return a + b; });
    }
    static int first_row() { return thread() / warp * (strips * m); }

    template <int N>
    struct Accumulator {
        using At = kernel::Positions<typename Layout::Accumulator, strips, N>;
        static constexpr int rows = At::rows, columns = At::columns, elements = Layout::Accumulator::table.elements;
        float d[strips][N / n][elements];

        float& at(int r, int c) { return d[At::strip(r)][At::tile(c)][At::element(r, c)]; }
        static int row(int r) { return first_row() + At::row(lane(), r); }
        static int column(int c) { return At::column(lane(), c); }
        static bool leads_row() { return At::leads_row(lane()); }
        void clear() { std::memset(d, 0, sizeof d); }
        void store_row(int r, float factor, Element* to, bool inside) {
            for (int c = 0; inside && c < columns; ++c)
                if (column(c) < Config::head_dim_v) to[column(c)] = {at(r, c) * factor};
        }
    };
    using Scores = Accumulator<Config::block_kv>;
    using Output = Accumulator<value_dim>;

    // Operands: `steps` fragments of k columns for every strip.
    template <int steps>
    struct LeftOperand {
        float b[strips][steps][Left::table.elements];
    };
    struct Rounded : LeftOperand<Config::block_kv / k> {
        void assign(Scores& scores) {
            constexpr bool free = kernel::accumulator_is_left_operand(Layout::Accumulator::table, Left::table);
            for (int s = 0; s < strips; ++s)
                for (int step = 0; step < Config::block_kv / k; ++step)
                    for (int e = 0; e < Left::table.elements; ++e)
                        if constexpr (free) {
                            int all = step * Left::table.elements + e;
                            this->b[s][step][e] = scores.d[s][all / Scores::elements][all % Scores::elements];
                        } else {
                            kernel::Place at = kernel::place(Left::table, lane(), e);
                            this->b[s][step][e] = fetch(scores, s, at.row, step * k + at.column);
                        }
        }
        // The score at (row, column) of a strip, wherever it is; every lane asks for one.
        static float fetch(Scores& scores, int strip, int row, int column) {
            struct In {
                int row, column;
                const Scores* scores;
            };
            return collective<float>(In{row, column, &scores}, [strip](auto in, auto out) {
                for (int to = 0; to < warp; ++to)
                    for (int l = 0; l < warp; ++l)
                        for (int e = 0; e < Scores::elements; ++e) {
                            kernel::Place at = kernel::place(Layout::Accumulator::table, l, e);
                            if (at.row == in(to).row && at.column == in(to).column % n) out(to) = in(l).scores->d[strip][in(to).column / n][e];
                        }
            });
        }
    };

    struct Rows {  // keys or values of a tile: element (row, column), zero where there is none
        const Element* base;
        long long stride;
        int first, begin, end, columns;
        float at(int row, int column) const {
            row += first;
            return row >= begin && row < end && column < columns ? base[row * stride + column].value : 0.0f;
        }
    };
    struct Pipeline {
        const kernel::ForwardParameters& p;
        kernel::Tile<Config> tile;
        int key_tile, value_tile;

        Rows rows_of(const void* base, const kernel::Strides& strides, int kv, int columns) const {
            return {row_of((const Element*)base, strides, tile.batch, tile.kv_head, 0), strides.row, kv * Config::block_kv, tile.visible_begin(0),
                    tile.visible_end(tile.rows() - 1), columns};
        }
        LeftOperand<key_dim / k> query() const {
            LeftOperand<key_dim / k> q;
            for (int s = 0; s < strips; ++s)
                for (int step = 0; step < key_dim / k; ++step)
                    for (int e = 0; e < Left::table.elements; ++e) {
                        kernel::Place at = kernel::place(Left::table, lane(), e);
                        int row = first_row() + s * m + at.row, column = step * k + at.column;
                        bool exists = tile.inside(row) && column < Config::head_dim;
                        q.b[s][step][e] =
                            exists ? row_of((const Element*)p.query, p.query_strides, tile.batch, tile.head_of(row), tile.query(row))[column].value : 0;
                    }
            return q;
        }
        Rows keys() const { return rows_of(p.key, p.key_strides, key_tile, Config::head_dim); }
        Rows values() const { return rows_of(p.value, p.value_strides, value_tile, Config::head_dim_v); }
        void release_query() {}
        void release_keys() { --key_tile; }
        void release_values() { --value_tile; }
        void take_turn() {}
        void pass_turn() {}
    };

    // c += left * right; `right(k, n)` is the right operand.
    template <class Right>
    static void multiply(float (&c)[Scores::elements], const float (&left)[Left::table.elements], Right right) {
        using I = Instruction;
        struct In {
            float left[Left::table.elements], right[I::b_in_shared ? 1 : Table::exchanged ? I::a_elements : I::b_elements], c[Scores::elements];
        } in;
        struct Out {
            float c[Scores::elements];
        };
        std::memcpy(in.left, left, sizeof left), std::memcpy(in.c, c, sizeof c);
        float shared[I::k][I::n] = {};
        if constexpr (I::b_in_shared) {
            for (int i = 0; i < I::k; ++i)
                for (int j = 0; j < I::n; ++j) shared[i][j] = right(i, j);
        } else {
            constexpr const kernel::Fragment& table = Layout::Right::table;
            for (int e = 0; e < table.elements; ++e) {
                kernel::Place at = kernel::place(table, lane(), e);
                in.right[e] = right(at.row, at.column);
            }
        }
        Out out = collective<Out>(in, [&](auto in_of, auto out_of) {
            for (int l = 0; l < warp; ++l) std::memcpy(out_of(l).c, in_of(l).c, sizeof in.c);
            auto a = [&](int l, int e) { return Table::exchanged ? in_of(l).right[e] : in_of(l).left[e]; };
            auto b = [&](int l, int e) { return Table::exchanged ? in_of(l).left[e] : in_of(l).right[e]; };
            auto d = [&](int l, int e) -> float& { return out_of(l).c[e]; };
            if (!isa::multiply<I>(a, b, shared, d)) std::fprintf(stderr, "copies of an operand's element differ\n"), std::abort();
        });
        std::memcpy(c, out.c, sizeof c);
    }
    static void start_scores(Scores& scores, const LeftOperand<key_dim / k>& query, const Rows& keys) {
        scores.clear();
        for (int s = 0; s < strips; ++s)
            for (int t = 0; t < Config::block_kv / n; ++t)
                for (int step = 0; step < key_dim / k; ++step)
                    multiply(scores.d[s][t], query.b[s][step], [&](int i, int j) { return keys.at(t * n + j, step * k + i); });
    }
    static void start_output(Output& output, const Rounded& p, const Rows& values) {
        for (int s = 0; s < strips; ++s)
            for (int t = 0; t < value_dim / n; ++t)
                for (int step = 0; step < Config::block_kv / k; ++step)
                    multiply(output.d[s][t], p.b[s][step], [&](int i, int j) { return values.at(step * k + i, t * n + j); });
    }

    struct Arguments {
        kernel::ForwardParameters parameters;
    };
    template <class Body>
    static void for_each_tile(const Arguments& arguments, char*, Body&& body) {
        kernel::Tile<Config> tile = kernel::tile_at<Config>(arguments.parameters, block.index);
        Pipeline pipeline{arguments.parameters, tile, tile.kv_end - 1, tile.kv_end - 1};
        body(tile, pipeline);
    }
};

}  // namespace tilewright::emulated
