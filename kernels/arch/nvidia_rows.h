// Where the rows of a sequence's keys or values are in memory.
#pragma once
#include "nvidia_garbage.h"

namespace tilewright::kernel {

// Rows of a sequence's keys or values, page by page.
struct PagedRows {
    static constexpr bool paged = true;
    const int* pages;  // of the sequence
    int shift;
    template <class Element>
    TILEWRIGHT_DEVICE const Element* at(const void* base, const Strides& strides, int, int kv_head, int key) const {
        return row_of((const Element*)base, strides, pages[key >> shift], kv_head, key & ((1 << shift) - 1));
    }
};
// One behind the other.
struct DenseRows {
    static constexpr bool paged = false;
    template <class Element>
    TILEWRIGHT_DEVICE const Element* at(const void* base, const Strides& strides, int batch, int kv_head, int key) const {
        return row_of((const Element*)base, strides, batch, kv_head, key);
    }
};

}  // namespace tilewright::kernel
