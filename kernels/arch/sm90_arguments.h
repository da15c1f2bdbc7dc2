// What a kernel of sm90.h is told: its parameters, and a tensor map each for query, key and value. Shared with the host that fills them in.
#pragma once
#include "../parameters.h"

namespace tilewright::kernel {

// The bytes of a CUtensorMap.
struct alignas(64) TensorMap {
    unsigned char opaque[128];
};

// The one argument of the entry point, by value (__grid_constant__). `parameters` is filled in as for every other family; the maps of
// packed sequences are of one batch.
template <class Parameters>
struct Sm90ArgumentsWith {
    TensorMap query, key, value;
    Parameters parameters;
};
using Sm90Arguments = Sm90ArgumentsWith<ForwardParameters>;
using Sm90PackedArguments = Sm90ArgumentsWith<PackedParameters>;

// Of the backward's passes: over keys K, V, Q, dO; over queries Q, dO, K, V. Boxes are tiles of rows and tiles of columns.
struct Sm90BackwardArguments {
    TensorMap row_scored, row_carried, scored, carried;
    PlainBackwardParameters parameters;
};

// Of decoding. Boxes are of as many rows as a page or a tile has, whichever are fewer.
struct Sm90DecodeArguments {
    TensorMap key, value;
    DecodeParameters parameters;
};

// Architectures of this family run a kernel of sm90.h, which takes Sm90Arguments, where this holds; else one of sm80.h,
// which takes ForwardParameters alone: float inputs, and addresses, strides or head dims that the copy engine cannot do.
constexpr bool takes_tensor_maps(int element_bytes, bool aligned) { return element_bytes == 2 && aligned; }

constexpr int panel_columns = 64;  // 128 bytes: the widest swizzle

// The arguments of cuTensorMapEncodeTiled that follow from a tensor: element strides are all 1, interleave none, swizzle
// 128B, L2 promotion as it says, out-of-bounds fill none (zeros), data type that of the elements. For query, key and value:
//   query: head_dim columns, seq_q rows, heads_q, box of block_q rows (not read where packs_heads: any valid map will do);
//   key: head_dim columns, value: head_dim_v columns; both seq_kv rows, heads_kv, box of block_kv rows.
// Where the columns are a multiple of 64 one copy brings a whole tile: dimensions (64, rows, panels, heads, batch);
// else one copy a panel, zeros beyond the last column: dimensions (columns, rows, heads, batch).
// A tensor without elements is never read: give it the address of any other.
struct TensorMapShape {
    int rank = 0;
    unsigned long long dims[5] = {};     // elements
    unsigned long long strides[4] = {};  // bytes, of dims[1] onwards
    unsigned box[5] = {};                // elements
    int promotion_bytes = 256;           // that the second level cache reads at least; 0: no more than are asked for
};

// `one_by_one`: a copy for every panel, whatever the columns.
constexpr TensorMapShape tensor_map_shape(const Strides& strides, int columns, int rows, int heads, int batch, int box_rows, bool one_by_one = false) {
    TensorMapShape shape;
    auto add = [&](long long count, long long stride, int box) {
        unsigned long long extent = count > 0 ? count : 1;
        shape.dims[shape.rank] = extent;
        shape.box[shape.rank] = box;
        // What is never stepped over may have any stride, but the driver wants a valid one.
        if (shape.rank > 0) shape.strides[shape.rank - 1] = extent == 1 ? round_up(2 * columns, 16) : 2 * stride;
        ++shape.rank;
    };
    bool whole_panels = columns % panel_columns == 0 && !one_by_one;
    add(whole_panels ? panel_columns : columns, 1, panel_columns);
    add(rows, strides.row, box_rows);
    if (whole_panels) add(columns / panel_columns, panel_columns, columns / panel_columns);
    add(heads, strides.head, 1);
    add(batch, strides.batch, 1);
    return shape;
}

}  // namespace tilewright::kernel
