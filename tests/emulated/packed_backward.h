// Backwards of packed sequences by emulated kernels.
#pragma once
#include "backward.h"

namespace tilewright::emulated {

// Of random lengths, beside rows that are no sequence's, and with NaN in one sequence: fails the test where a gradient is wrong.
void expect_right_packed_backward(const EmulatedBackward& kernels);

}  // namespace tilewright::emulated
