// The backward's part of nvidia_garbage.h: columns that are hidden from some rows are cleaned in shared memory between the products
// that score them and those that carry them to the gradients, and what rows do see of NaN or infinity is put back afterwards.
#pragma once
#include "../backward_bias.h"
#include "nvidia_garbage.h"

namespace tilewright::kernel::nvidia {

// Of one warp, after it has stored `rows` rows of a gradient from `first_row` on: sums up what is not finite of the columns that a
// row is paired with and the bias does not hide. `weighted`: by P, which is finite; otherwise by dS, and inf * dS is NaN, because P is then 0 or NaN.
template <class Arch, bool weighted, int depth>
TILEWRIGHT_DEVICE void reveal_gradient(const ForwardParameters& p, const BackwardTile<typename Arch::Config>& tile, int first_row, int rows, const void* columns, const Strides& strides, void* gradient, const Strides& gradient_strides) {
    using Config = typename Arch::Config;
    using Element = typename Config::Element;
    __syncwarp();
    for (int row = first_row; row < first_row + rows && tile.inside(row); ++row) {
        int begin = tile.paired_begin(row), end = tile.paired_end(row);
        Element* to = row_of((Element*)gradient, gradient_strides, tile.batch, tile.head, tile.first_row + row);
        for (int c = threadIdx.x % 32; c < depth; c += 32) {
            float sum = 0;
            for (BackwardStep step = tile.first_step(); step.left > 0; step = tile.next(step)) {
                if (!tile.hides(step)) continue;
                int last = min_of(end, step.first + BackwardTile<Config>::block_columns);
                _Pragma("unroll 1") for (int column = max_of(begin, step.first); column < last; ++column) {
                    float x = to_float(row_of((const Element*)columns, strides, tile.column_batch(), step.head, column)[c]);
                    if (Config::bias && bias_hides<Arch>(p, tile, Config::over_keys ? step.head : tile.head, row, column)) continue;
                    if (!is_finite(x)) sum += weighted ? x : x - x;
                }
            }
            if (!is_finite(sum)) to[c] = rounded(Element(), to_float(to[c]) + sum);
        }
    }
}

}  // namespace tilewright::kernel::nvidia
