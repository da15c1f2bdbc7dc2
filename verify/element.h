// Element types on the host: decoding is exact, encoding rounds once, to nearest even.
#pragma once
#include <cstdint>

#include "tilewright/dtype.h"

namespace tilewright {

// The element at `address`, which need not be aligned.
double load_element(DType dtype, const void* address);
// `count` elements, `stride` elements apart, into floats, which hold every element exactly.
void load_elements(DType dtype, const void* first, int64_t stride, int64_t count, float* to);
// Rounds `value` to `dtype` and writes it; what is too large becomes an infinity, NaN stays NaN.
void store_element(DType dtype, void* address, double value);
// `value` as an element of `dtype` holds it.
double round_to(DType dtype, double value);
// The largest finite element; its negative is the lowest.
double largest_finite(DType dtype);
// Distance between 1 and the next element.
double epsilon(DType dtype);

}  // namespace tilewright
