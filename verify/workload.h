// The tensors of one attention call in host memory: random data by a fixed seed, any layout, guards around every buffer.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tilewright/problem.h"
#include "verify/reference.h"

namespace tilewright {

// How query, key, value and out lie in memory. The numbers are the same in all of them.
enum class Layout {
    heads_first,  // [batch][head][row][column], contiguous
    rows_first,   // [batch][row][head][column], contiguous
    packed,       // query, key and value interleaved: [batch][row][query heads, key heads, value heads][column]; needs
                  // seq_q == seq_kv and head_dim == head_dim_v, otherwise rows_first
    transposed,   // [row][batch][head][column]
    gapped,       // heads_first with unused elements between rows, heads and batches that keep 16-byte alignment
    unaligned,    // heads_first, the first element 2 or 4 bytes off, odd gaps
};
constexpr Layout all_layouts[] = {Layout::heads_first, Layout::rows_first, Layout::packed, Layout::transposed, Layout::gapped, Layout::unaligned};
const char* name(Layout layout);

struct WorkloadOptions {
    uint64_t seed = 1;
    Layout layout = Layout::rows_first;
    std::optional<float> scale;  // default 1 / sqrt(head_dim)
    float softcap = 20;          // used where the problem asks for one
    double spread = 1;           // standard deviation of queries and keys; values have 1
    bool lse = true;             // false: no lse is asked for
    std::vector<int32_t> lengths;        // decode and packed: keys of each sequence; empty: kv_lengths() of the problem
    std::vector<int32_t> query_lengths;  // packed: queries of each sequence; empty: query_lengths() of the problem
    std::array<int64_t, 4> unused_rows{};  // packed: before the first and behind the last query, before the first and behind the last key
    bool wide_starts = false;              // packed: starts of 64 bits
    std::array<bool, 4> broadcast_bias{};  // dimensions [batch][head][row][column] of the bias with stride 0
};

// Bytes of a buffer: guard, contents, guard. Input guards and gaps hold NaN, so that reading them shows; output guards
// and gaps hold a pattern, so that writing them shows; output elements hold NaN until a kernel writes them.
struct Buffer {
    static constexpr int64_t guard_bytes = 16384;
    std::vector<unsigned char> bytes;
    bool output = false;
};

struct Tensor {
    int buffer = -1;  // index in Workload::buffers; -1: absent
    DType dtype = DType::fp32;
    int64_t offset = 0;  // bytes from the buffer's first byte, guard included
    std::array<int64_t, 4> sizes{}, strides{};  // [batch][head][row][column], in elements
    bool present() const { return buffer >= 0; }
};

// Plain data: change any element before the workload is uploaded.
struct Workload {
    Problem problem;
    float scale = 1;
    float softcap = 0;
    std::vector<Buffer> buffers;
    Tensor query, key, value, out, bias;
    Tensor lse;          // [batch][heads_q][seq_q][1], float32
    Tensor slope, sink;  // [1][heads_q][1][1], float32
    // Of backward problems, whose out and lse are inputs. As the tensors they are the gradients of; lse_gradient as lse.
    Tensor out_gradient, lse_gradient, query_gradient, key_gradient, value_gradient, sink_gradient;
    Tensor bias_gradient;  // as the bias; of broadcast dimensions it has one member, and stride 0

    // Of decode and packed problems: keys of each sequence [batch], and if the problem has pages, which lie where: [batch][table_stride]. Key and value
    // are then [page][heads_kv][page_size][...]. Slots without a key hold NaN, entries without a page a number that is none.
    std::vector<int32_t> lengths, block_table;
    int64_t table_stride = 0;
    int splits = 0;  // that are asked for; 0: as many as the config says
    // Of packed problems: queries of each sequence [batch], first rows and the end of the last [batch + 1]. There are so many rows in all, of which
    // the tensors, [1][heads][rows][...], show those from the first start to the last.
    std::vector<int32_t> query_lengths;
    std::vector<int64_t> query_starts, key_starts;
    int64_t query_rows = 0, key_rows = 0;
    bool wide_starts = false;

    // Where a query of a (sequence, head) is in query, out and lse: the same, unless the problem is packed.
    RowIndex row_of(const RowIndex& of) const;
    // Where the key `row` of a sequence lies: the batch and the row of the tensors key and value.
    struct Slot {
        int64_t batch, row;
    };
    Slot slot(int64_t sequence, int64_t row) const;

    double get(const Tensor& tensor, int64_t batch, int64_t head, int64_t row, int64_t column) const;
    void set(const Tensor& tensor, int64_t batch, int64_t head, int64_t row, int64_t column, double number);
    void fill(const Tensor& tensor, double number);
    // Views into this workload's buffers: valid while it lives and its buffers keep their sizes.
    TensorView view(const Tensor& tensor) const;
    AttentionInputs inputs() const;
    // What a kernel is to write, of those that are present: out and lse, or the gradients.
    std::vector<const Tensor*> written() const;
    // Their elements to NaN, the bytes around them to the pattern.
    void blank_outputs();
    // Every element, in the order of the dimensions.
    std::vector<double> elements(const Tensor& tensor) const;
    // Every row of out and lse, in the order of all_rows() (of packed problems, sequence by sequence within each head).
    Answer outputs() const;
};

// "query", "out_gradient": which of the workload's tensors shares the tensor's buffer.
const char* name_of(const Workload& workload, const Tensor& tensor);

// One query head of one sequence of a decode or packed workload, as a forward problem over its keys, which are copied.
struct SequenceInputs {
    AttentionInputs inputs;
    std::vector<unsigned char> key, value;  // what `inputs` refers to
};
SequenceInputs sequence_inputs(const Workload& workload, int64_t sequence, int64_t head);

// The problem must be valid; out and lse of a backward problem are left to the caller. The data depend on the seed and the logical position alone, not on the layout.
Workload make_workload(const Problem& problem, const WorkloadOptions& options = {});

}  // namespace tilewright
