// The bias in the backward: that of a pair, and how its gradient is cut into tiles.
#pragma once
#include "backward_tile.h"

namespace tilewright::kernel {

// Of rows and columns of a tile; beyond the last ones, that of the last.
template <class Arch, class Position>
TILEWRIGHT_DEVICE auto bias_of(const ForwardParameters& p, const BackwardTile<typename Arch::Config>& tile, const BackwardStep& step, int row, Position column) {
    using Config = typename Arch::Config;
    constexpr bool over_keys = Config::over_keys;
    long long along_rows = over_keys ? p.bias_column_stride : p.bias_strides.row, along_columns = over_keys ? p.bias_strides.row : p.bias_column_stride;
    auto* from = row_of((const typename Config::Element*)p.bias, p.bias_strides, tile.batch, over_keys ? step.head : tile.head, 0);
    return Arch::gather(from + min_of(tile.first_row + row, tile.rows - 1) * along_rows, along_columns, column + step.first, tile.columns);
}
// Whether the bias hides the column, counted from the first of all, from the row.
template <class Arch>
TILEWRIGHT_DEVICE bool bias_hides(const ForwardParameters& p, const BackwardTile<typename Arch::Config>& tile, int head, int row, int column) {
    using Config = typename Arch::Config;
    if constexpr (!Config::bias) {
        return false;
    } else {
        int query = Config::over_keys ? column : tile.first_row + row, key = Config::over_keys ? tile.first_row + row : column;
        return Arch::element_at(row_of((const typename Config::Element*)p.bias, p.bias_strides, tile.batch, head, query) + key * p.bias_column_stride) == -infinity;
    }
}

// The gradient of the bias in tiles of queries by keys, of which a dimension of stride 0 has one. What is summed into a tile, part by part: all
// batches, all heads and all tiles of queries where they are one, and within a part all tiles of keys.
template <class Config>
struct BiasGradientTile {
    using Part = BackwardTile<Config>;
    static constexpr int block_rows = Part::block_rows, block_columns = Part::block_columns;
    int batch, head, row_block, column_block;        // the first of each
    int batches, heads, row_blocks, column_blocks;  // that are summed
    int rows, columns;  // of the gradient that are in this tile

    static constexpr int blocks(int members, int block) { return (members + block - 1) / block; }
    TILEWRIGHT_DEVICE BiasGradientTile(const BackwardParameters& p, int index) {
        const ForwardParameters& f = p.forward;
        const Strides& strides = p.bias_gradient_strides;
        auto take = [&](int count, bool apart, int& first, int& summed) {
            first = apart ? index % count : 0, summed = apart ? 1 : count;
            if (apart) index /= count;
        };
        take(blocks(f.seq_kv, block_columns), p.bias_gradient_column_stride != 0, column_block, column_blocks);
        take(blocks(f.seq_q, block_rows), strides.row != 0, row_block, row_blocks);
        take(f.heads_q, strides.head != 0, head, heads);
        take(f.batch, strides.batch != 0, batch, batches);
        rows = strides.row ? min_of(block_rows, f.seq_q - row_block * block_rows) : 1;
        columns = p.bias_gradient_column_stride ? min_of(block_columns, f.seq_kv - column_block * block_columns) : 1;
    }
    TILEWRIGHT_DEVICE int parts() const { return batches * heads * row_blocks; }
    TILEWRIGHT_DEVICE Part part(const ForwardParameters& p, int i) const {
        int of_batch = heads * row_blocks, of_head = row_blocks;
        TILEWRIGHT_FORGET_SCALAR(of_batch);
        TILEWRIGHT_FORGET_SCALAR(of_head);
        Part part;
        part.set_sizes(p);
        part.batch = batch + i / of_batch, part.head = head + i % of_batch / of_head, part.first_row = (row_block + i % of_head) * block_rows;
        part.count_steps();
        if (column_blocks == 1) part.keep_columns(column_block * block_columns);
        return part;
    }
};
// How many there are.
constexpr long long bias_gradient_tiles(const BackwardParameters& p, int block_rows, int block_columns) {
    auto count = [](long long members, long long block, long long stride) { return stride ? (members + block - 1) / block : 1; };
    const ForwardParameters& f = p.forward;
    return count(f.batch, 1, p.bias_gradient_strides.batch) * count(f.heads_q, 1, p.bias_gradient_strides.head) * count(f.seq_q, block_rows, p.bias_gradient_strides.row) *
           count(f.seq_kv, block_columns, p.bias_gradient_column_stride);
}

}  // namespace tilewright::kernel
