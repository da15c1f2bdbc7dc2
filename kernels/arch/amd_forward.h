// The forward's operations on AMD, over one matrix instruction. Products are transposed, S^T = K Q^T and O^T = V^T P^T (see
// layouts.h): a lane holds one query of each strip, and rounded scores are nearly, or wholly, the next operand.
//
// A Matrix has: Layout (of layouts.h), products (instructions of one step), Operand (16-bit elements of a lane for one step),
// Vector (a lane's accumulator), multiply(Element, a, b, c), exchange<mask>(x) (x of lane ^ mask), any(bool), and
// spread(short8): from eight rounded neighbours in the accumulator to the operand.
#pragma once
#include "amd_pipeline.h"

namespace tilewright::kernel::amd {

template <class Config_, class Matrix, AmdFamily family>
struct Forward : Lane {
    using Config = Config_;
    using Element = typename Config::Element;
    using Layout = typename Matrix::Layout;
    using Left = typename Layout::Left;
    using Right = typename Layout::Right;
    using Operand = typename Matrix::Operand;
    using Vector = typename Matrix::Vector;
    static_assert(sizeof(Element) == 2, "AMD kernels are for fp16 and bf16: convert fp32 inputs");
    static_assert(!Config::persistent, "AMD's blocks do one tile each: persistent = 0");

    static constexpr AmdShape shape{Config::block_q,  Config::block_kv, Config::stages,
                                    Config::workers, Config::head_dim, Config::head_dim_v};
    static constexpr AmdResources needs = amd_resources(family, shape);
    static_assert(amd_restriction(family, shape) == nullptr, "see amd_restriction in resources_amd.h for what this config breaks");
    static constexpr int wave = needs.wave, side = needs.side, depth = needs.depth, threads = needs.threads;
    static constexpr int strips = Config::block_q / Config::workers / side;  // of queries, in one wave
    static constexpr int held = sizeof(Operand) / 16;                        // 16-byte pieces of a lane's operand
    static constexpr bool copied = copies(Left::table) > 1;                  // operands are held twice

    static_assert(Left::table.lanes == wave && Layout::m == side && Layout::n == side && Layout::k * Matrix::products == depth);
    static_assert(Left::table.elements * Matrix::products == 8 * held && operands_agree(Left::table, Right::table));
    static_assert(copied || accumulator_is_left_operand(Layout::Accumulator::table, Left::table) ||
                  (Matrix::products == 1 && accumulator_keeps_lanes(Layout::Accumulator::table, Left::table)));
    static_assert(rows_per_lane(Layout::Accumulator::table) == 1, "a lane holds one query of a strip");
    // Of an output row, a lane holds this many neighbours.
    using Neighbours = typename Choose<Layout::Accumulator::table.element_bits[2].column == 4, short8, short4>::type;

    static TILEWRIGHT_DEVICE int lane() { return thread() % wave; }
    static TILEWRIGHT_DEVICE int first_row() { return thread() / wave * (strips * side); }
    static TILEWRIGHT_DEVICE bool any(bool x) { return Matrix::any(x); }

    template <class Join>
    static TILEWRIGHT_DEVICE float over_row(float x, Join&& join) {
        constexpr int sharers = reduction_lanes(Layout::Accumulator::table);
        if constexpr ((sharers & 16) != 0) x = join(x, Matrix::template exchange<16>(x));
        if constexpr ((sharers & 32) != 0) x = join(x, Matrix::template exchange<32>(x));
        static_assert((sharers & ~48) == 0);
        return x;
    }
    static TILEWRIGHT_DEVICE float row_max(float x) {
        return over_row(x, [](float a, float b) { return Lane::max(a, b); });
    }
    static TILEWRIGHT_DEVICE float row_sum(float x) {
        return over_row(x, [](float a, float b) { return a + b; });
    }

    template <int N>
    struct Accumulator {
        using At = Positions<typename Layout::Accumulator, strips, N>;
        static constexpr int rows = At::rows, columns = At::columns;
        Vector d[strips][N / side];

        TILEWRIGHT_DEVICE Reference<Vector> at(int r, int c) { return {d[At::strip(r)][At::tile(c)], At::element(r, c)}; }
        static TILEWRIGHT_DEVICE int row(int r) {
            int x = thread();
            TILEWRIGHT_FORGET(x);
            return x / wave * (strips * side) + At::row(x % wave, r);
        }
        static TILEWRIGHT_DEVICE int column(int c) {
            int x = thread();
            TILEWRIGHT_FORGET(x);
            return At::column(x % wave, c);
        }
        static TILEWRIGHT_DEVICE bool leads_row() { return At::leads_row(lane()); }
        TILEWRIGHT_DEVICE void clear() {
            TILEWRIGHT_UNROLL for (int r = 0; r < strips; ++r)
                TILEWRIGHT_UNROLL for (int t = 0; t < N / side; ++t) d[r][t] = Vector{};
        }
        // `Run` elements from the lane's column c on, rounded.
        template <class Run, class Pack>
        TILEWRIGHT_DEVICE Run run(int r, int c, float factor, Pack&& pack_pair) {
            struct {
                unsigned pair[sizeof(Run) / 4];
            } x;
            TILEWRIGHT_UNROLL for (int i = 0; i < int(sizeof(Run) / 4); ++i)
                x.pair[i] = pack_pair(at(r, c + 2 * i) * factor, at(r, c + 2 * i + 1) * factor);
            return __builtin_bit_cast(Run, x);
        }
        TILEWRIGHT_DEVICE void store_row(int r, float factor, Element* to, bool inside) {
            auto exactly = [](float low, float high) { return pack(Element(), low, high); };
            if constexpr (copied) {  // all lanes swap, then each half of them writes one of the two pieces
                TILEWRIGHT_UNROLL for (int c = 0; c < columns; c += 8) {
                    Operand all = Matrix::spread(run<short8>(r, c, factor, exactly));
                    if (inside) store(to, c / 8 * depth + lane() / side * 8, lane() < side ? (short8)all.lo : (short8)all.hi);
                }
            } else if (inside) {
                TILEWRIGHT_UNROLL for (int c = 0; c < columns; c += sizeof(Neighbours) / 2) store(to, column(c), run<Neighbours>(r, c, factor, exactly));
            }
        }
        TILEWRIGHT_DEVICE void store_row(int r, float factor, fp32* to, bool inside) {  // not rounded
            TILEWRIGHT_UNROLL for (int c = 0; c < columns; ++c)
                if (inside && column(c) < Config::head_dim_v) store_global<float>(to + column(c), at(r, c) * factor);
        }
        template <class Run>
        static TILEWRIGHT_DEVICE void store(Element* to, int column, Run x) {
            store_run<Config::head_dim_v, Config::aligned>(to, column, x);
        }
    };
    using Scores = Accumulator<Config::block_kv>;
    using Output = Accumulator<needs.value_dim>;

    struct Rounded {
        Operand b[strips][Config::block_kv / depth];
        TILEWRIGHT_DEVICE void assign(Scores& scores) {
            TILEWRIGHT_UNROLL for (int r = 0; r < strips; ++r) TILEWRIGHT_UNROLL for (int n = 0; n < Config::block_kv / depth; ++n)
                b[r][n] = Matrix::spread(scores.template run<short8>(
                    r, 8 * n, 1.0f, [](float low, float high) { return pack_probabilities(Element(), low, high); }));
        }
    };
    // The key at a position of a row of V^T in LDS: what a lane needs for a step lies together, in the order in which it holds P.
    static TILEWRIGHT_DEVICE constexpr int key_at(int position) {
        if constexpr (copied) return position;
        else return Positions<typename Layout::Accumulator, 1, Config::block_kv>::column(
                position % depth / 8 * side, position / depth * 8 + position % 8);
    }

    // `row` of an operand's tile, step k of the product, in LDS rows of `pieces`.
    template <int pieces, bool transposed = false>
    static TILEWRIGHT_DEVICE Operand operand(const char* from, int tile, int k) {
        struct {
            short8 piece[held];
        } x;
        int group = copied ? 0 : lane() / side;
        TILEWRIGHT_UNROLL for (int i = 0; i < held; ++i)
            x.piece[i] = *(const short8*)(from + slot<pieces, transposed>(tile * side + lane() % side, k * (depth / 8) + group * held + i));
        return __builtin_bit_cast(Operand, x);
    }

    using Pipeline = amd::Pipeline<Forward>;
    struct QueryInRegisters {
        Operand b[strips][needs.key_dim / depth];
        template <class Source>
        TILEWRIGHT_DEVICE explicit QueryInRegisters(const Source& pipeline) {
            TILEWRIGHT_UNROLL for (int r = 0; r < strips; ++r) TILEWRIGHT_UNROLL for (int k = 0; k < needs.key_dim / depth; ++k)
                b[r][k] = pipeline.query_piece(first_row() + r * side + lane() % side, k * (depth / 8) + lane() / side);
        }
        TILEWRIGHT_DEVICE Operand at(int r, int k) const { return b[r][k]; }
    };
    struct QueryInLds {  // a wave's own rows: nobody else reads them
        static constexpr int pieces = needs.key_dim / 8;
        const char* from;
        template <class Source>
        TILEWRIGHT_DEVICE explicit QueryInLds(const Source& pipeline) {
            char* to = pipeline.queries_at() + first_row() * (2 * needs.key_dim);
            for (int index = lane(); index < strips * side * pieces; index += wave)
                *(short8*)(to + slot<pieces>(index / pieces, index % pieces)) = pipeline.query_piece(first_row() + index / pieces, index % pieces);
            from = to;
        }
        TILEWRIGHT_DEVICE Operand at(int r, int k) const { return operand<pieces>(from, r, k); }
    };
    using Query = typename Choose<needs.queries_in_lds, QueryInLds, QueryInRegisters>::type;

    static constexpr int shared_bytes =
        Config::stages * (Pipeline::key_bytes + Pipeline::value_bytes) + (needs.queries_in_lds ? 2 * Config::block_q * needs.key_dim : 0);
    static_assert(shared_bytes == needs.shared_bytes);

    template <class Fragment, class Rows>
    static TILEWRIGHT_DEVICE void start_scores(Fragment& scores, const Rows& query, const char* keys) {
        scores.clear();
        TILEWRIGHT_UNROLL for (int k = 0; k < needs.key_dim / depth; ++k) TILEWRIGHT_UNROLL for (int t = 0; t < Config::block_kv / side; ++t) {
            Operand a = operand<needs.key_dim / 8>(keys, t, k);
            TILEWRIGHT_UNROLL for (int r = 0; r < strips; ++r) scores.d[r][t] = Matrix::multiply(Element(), a, query.at(r, k), scores.d[r][t]);
        }
    }
    template <class Fragment, class Left>
    static TILEWRIGHT_DEVICE void start_output(Fragment& output, const Left& p, const char* values) {
        TILEWRIGHT_UNROLL for (int t = 0; t < needs.value_dim / side; ++t) TILEWRIGHT_UNROLL for (int k = 0; k < Config::block_kv / depth; ++k) {
            Operand a = operand<Config::block_kv / 8, true>(values, t, k);
            TILEWRIGHT_UNROLL for (int r = 0; r < strips; ++r) output.d[r][t] = Matrix::multiply(Element(), a, p.b[r][k], output.d[r][t]);
        }
    }

    struct Arguments {
        ParametersOf<Config> parameters;
    };
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_tile(const Arguments& arguments, char* shared, Body&& body) {
        Tile<Config> tile = tile_at<Config>(arguments.parameters, __builtin_amdgcn_workgroup_id_x());
        Pipeline pipeline(forward_of(arguments.parameters), tile, shared);
        body(tile, pipeline);
        if constexpr (Pipeline::rows_differ) pipeline.add_nonfinite();
    }
};

}  // namespace tilewright::kernel::amd
