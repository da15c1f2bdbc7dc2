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

constexpr int64_t smallest_page = 16, largest_page = int64_t{1} << 24;
// Of a cache for `problem`.
inline Status check_pages(const Problem& problem, const void* block_table, int64_t page_size, int64_t table_stride, int64_t pages) {
    if (problem.page_size != 0 && problem.page_size != page_size)
        return invalid_argument("page_size is " + std::to_string(page_size) + ", but the problem's is " + std::to_string(problem.page_size));
    if (!block_table) {
        if (page_size == 0) return {};
        return invalid_argument("page_size is " + std::to_string(page_size) + ", but there is no block table");
    }
    if (page_size < smallest_page || page_size > largest_page || (page_size & (page_size - 1)))
        return invalid_argument("page_size is " + std::to_string(page_size) + "; it must be a power of two from " + std::to_string(smallest_page) + " to " +
                                std::to_string(largest_page));
    if (pages < 0 || pages > INT32_MAX) return invalid_argument("pages is " + std::to_string(pages) + "; it must be from 0 to " + std::to_string(INT32_MAX));
    if (table_stride < 0) return invalid_argument("table_stride is " + std::to_string(table_stride) + "; it must not be negative");
    return {};
}
inline int page_shift(int64_t page_size) {
    int shift = 0;
    while (int64_t{1} << shift < page_size) ++shift;
    return shift;
}

inline kernel::Strides strides_of(const Extent& tensor) { return {tensor.batch_stride, tensor.head_stride, tensor.row_stride}; }

}  // namespace tilewright
