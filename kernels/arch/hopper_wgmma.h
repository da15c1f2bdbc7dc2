// NVIDIA sm_90a: products by warpgroups. An instruction's size is part of its name, so the generated prelude has the wrappers:
// wgmma_scores adds to its accumulator and wgmma_scores_fresh sets it (both operands in shared memory), wgmma_output adds,
// with the left operand in registers.
#pragma once
#include "hopper.h"

namespace tilewright::kernel {
namespace hopper {

// A tile as the matrix unit reads it: panels of 64 columns (128 bytes), swizzled over 8 rows, as the copy engine leaves
// them. An operand is the low half of its descriptor: where it is, and how far panels are apart. The high half, that 8 rows
// are 1024 bytes apart and the swizzle, is the same for all.
TILEWRIGHT_DEVICE unsigned operand(unsigned address, int panel_rows) { return address >> 4 | (unsigned)(panel_rows * 128 >> 4) << 16; }
TILEWRIGHT_DEVICE unsigned long long descriptor(unsigned operand) { return (unsigned long long)((1024 >> 4) | 1u << 30) << 32 | operand; }

// scores = left right^T: rows of either lie along `depth`. wgmma_scores_fresh says that it reads its accumulator, although
// it does not, and so keeps its registers where they are: faster than a fresh set of them.
template <int depth, int left_rows, int right_rows, class Scores>
TILEWRIGHT_DEVICE void start_scores(Scores& scores, unsigned left, unsigned right) {
    scores.settle();
    ptx::wgmma_fence();
    TILEWRIGHT_UNROLL for (int k = 0; k < depth / 16; ++k) {
        int panel = k / 4, within = k % 4 * 32;
        unsigned long long a = descriptor(left + ((panel * left_rows * 128 + within) >> 4)), b = descriptor(right + ((panel * right_rows * 128 + within) >> 4));
        if (k == 0) wgmma_scores_fresh(scores.numbers(), a, b);
        else wgmma_scores(scores.numbers(), a, b);
    }
    ptx::wgmma_commit();
}
// output += left right: `left` waits in registers, rows of `right` lie across `depth`.
template <int depth, class Output, class Rounded>
TILEWRIGHT_DEVICE void start_output(Output& output, const Rounded& left, unsigned right) {
    output.settle();
    ptx::wgmma_fence();
    TILEWRIGHT_UNROLL for (int k = 0; k < depth / 16; ++k)
        wgmma_output(output.d[0], left.a[0][4 * k], left.a[0][4 * k + 1], left.a[0][4 * k + 2], left.a[0][4 * k + 3], descriptor(right + (k * 2048 >> 4)));
    ptx::wgmma_commit();
}

struct Common : nvidia::Common {
    // Waits for all products but the `pending` started last. Without settling, the compiler would read the result early.
    template <int pending, class Fragment>
    static TILEWRIGHT_DEVICE void finish(Fragment& result) {
        ptx::wgmma_wait<pending>(), result.settle();
    }
};

// A warpgroup holds 64 rows, each of its warps 16; the first warpgroup holds none.
template <class Element, int N>
using Accumulator = nvidia::Accumulator<Element, layouts::Wgmma64x8x16, N, 1, 1>;

}  // namespace hopper
}  // namespace tilewright::kernel
