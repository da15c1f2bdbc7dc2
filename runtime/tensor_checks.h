// What a caller gives as tensors, checked against the problem.
#pragma once
#include <cstdint>
#include <string>

#include "kernels/parameters.h"
#include "tilewright/attention.h"

namespace tilewright {

// A tensor as it is checked: sizes from the problem, where it lies from the caller.
struct Extent {
    const char* name;
    const void* data;
    int64_t batch_stride, head_stride, row_stride, column_stride;
    int64_t batch, heads, rows, columns;
    bool empty() const { return batch == 0 || heads == 0 || rows == 0 || columns == 0; }
};
template <class Tensor>
Extent extent(const char* name, const Tensor& tensor, int64_t batch, int64_t heads, int64_t rows, int64_t columns) {
    return {name, tensor.data, tensor.batch_stride, tensor.head_stride, tensor.row_stride, tensor.column_stride, batch, heads, rows, columns};
}

inline Status check_extent(const Extent& tensor) {
    if (tensor.empty()) return {};
    if (!tensor.data) return invalid_argument(std::string(tensor.name) + " is null, but the problem gives it elements");
    if (tensor.columns > 1 && tensor.column_stride != 1)
        return invalid_argument("the last stride of " + std::string(tensor.name) + " is " + std::to_string(tensor.column_stride) + "; it must be 1");
    return {};
}

inline Status check_pointer(const char* name, const void* pointer, bool wanted) {
    if (wanted == (pointer != nullptr)) return {};
    return invalid_argument(std::string(name) + (wanted ? " is null, but the problem has one" : " is given, but the problem has none"));
}

// Fit for 16-byte accesses and for engines that copy boxes, which go forward only.
inline bool is_aligned(const Extent& tensor, int64_t element_bytes) {
    auto strides = tensor.batch_stride * (tensor.batch > 1) | tensor.head_stride * (tensor.heads > 1) | tensor.row_stride * (tensor.rows > 1);
    return tensor.empty() ||
           (reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0 && strides >= 0 && strides * element_bytes % 16 == 0 && tensor.columns * element_bytes % 16 == 0);
}

inline kernel::Strides strides_of(const Extent& tensor) { return {tensor.batch_stride, tensor.head_stride, tensor.row_stride}; }

}  // namespace tilewright
