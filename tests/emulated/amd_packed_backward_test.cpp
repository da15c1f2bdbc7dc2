// The backward of packed sequences under the AMD arch headers, on fibers.
#include <gtest/gtest.h>

#include "packed_backward.h"

namespace tilewright::emulated {
namespace {

TEST(AmdPackedBackward, IsThatOfEachSequenceAlone) {
    for (auto* list : {cdna_packed_backward, rdna3_packed_backward, rdna4_packed_backward})
        for (const EmulatedBackward& kernels : list()) expect_right_packed_backward(kernels);
}

}  // namespace
}  // namespace tilewright::emulated
