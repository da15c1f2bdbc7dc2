// Attention calls: exact attention on a device, with the config that the tuning databases know to be the fastest.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/problem.h"
#include "tilewright/status.h"
#include "tilewright/tuning.h"

namespace tilewright {

// A tensor [batch][head][row][column] in the device's memory, owned by the caller. Strides in elements, any value, 0
// included; the last dimension must have stride 1.
struct InputTensor {
    const void* data = nullptr;
    int64_t batch_stride = 0, head_stride = 0, row_stride = 0, column_stride = 1;
};
struct OutputTensor {
    void* data = nullptr;
    int64_t batch_stride = 0, head_stride = 0, row_stride = 0, column_stride = 1;
};

// Contiguous [batch][head][row][column].
InputTensor dense(const void* data, int64_t heads, int64_t rows, int64_t columns);
OutputTensor dense(void* data, int64_t heads, int64_t rows, int64_t columns);

struct ForwardTensors {
    InputTensor query;                   // [batch][heads_q][seq_q][head_dim], the problem's dtype, as are key, value, out and bias
    InputTensor key;                     // [batch][heads_kv][seq_kv][head_dim]
    InputTensor value;                   // [batch][heads_kv][seq_kv][head_dim_v]
    OutputTensor out;                    // [batch][heads_q][seq_q][head_dim_v]; may not overlap an input
    float* lse = nullptr;                // [batch][heads_q][seq_q], contiguous, natural logarithm; null: not wanted
    InputTensor bias;                    // [batch][heads_q][seq_q][seq_kv], any strides, if the problem has one
    const float* alibi_slope = nullptr;  // [heads_q], if the problem has ALiBi
    const float* sink = nullptr;         // [heads_q], if the problem has sinks
    std::optional<float> scale;          // of the scores; default 1 / sqrt(head_dim)
    float softcap = 0;                   // positive, if the problem has one
};

enum class IndexType : int { int32 = 1, int64 = 2 };

// Sequences of any lengths, 0 included, one behind the other in the rows of every tensor. Both pointers are the device's.
struct PackedSequences {
    // Sequence i has the rows from starts[i] to starts[i + 1] - 1 of query and out, and of key and value: [batch + 1], not descending,
    // from 0 to the number of rows. What stands in rows before the first start and behind the last is not looked at, nor written.
    const void* query_starts = nullptr;
    const void* key_starts = nullptr;
    IndexType type = IndexType::int32;  // of the starts
    int64_t query_rows = 0;  // of query and out: [row][heads_q][head_dim], say, with any strides; batch strides are not used
    int64_t key_rows = 0;    // of key and value
};

// Few queries and many keys of each sequence, whose number may differ. All pointers are the device's.
struct DecodeTensors {
    InputTensor query;  // [batch][heads_q][seq_q][head_dim]
    // [batch][heads_kv][seq_kv][head_dim or head_dim_v]; in pages [page][heads_kv][page_size][...], so that batch_stride is the
    // distance of pages. What stands behind a sequence's last key, in a page too, is never looked at.
    InputTensor key, value;
    OutputTensor out;              // [batch][heads_q][seq_q][head_dim_v]; may not overlap an input
    float* lse = nullptr;          // [batch][heads_q][seq_q], contiguous, natural logarithm; null: not wanted
    const int32_t* lengths = nullptr;  // keys of each sequence, [batch], from 0 to the problem's seq_kv; null: all have seq_kv
    const int32_t* block_table = nullptr;  // pages of each sequence, [batch][table_stride]; null: keys and values are not in pages
    int64_t table_stride = 0;      // entries between two sequences; a row of the table holds at least the pages of its sequence
    int64_t page_size = 0;         // keys of a page, a power of two from 16 on, if there is a block table; the problem's, if it has one
    int64_t pages = 0;             // of the cache, if known: then a kernel may ask for keys and values before the one ahead of it has ended
    InputTensor bias;              // as ForwardTensors has them, from here on
    const float* alibi_slope = nullptr;
    const float* sink = nullptr;
    std::optional<float> scale;
    float softcap = 0;
    // decode_workspace_bytes() of memory, 16-byte aligned, filled with zeros before its first use; every call leaves it fit for the
    // next. Not shared by calls that may run at the same time. Null where that is 0.
    void* workspace = nullptr;
    int64_t workspace_bytes = 0;
    int splits = 0;                // units that the keys of all sequences are cut into, per KV head; 0: as many as the device likes
};

// New keys and values, and the cache that they are written to: DecodeTensors' key and value. All pointers are the device's.
struct AppendTensors {
    InputTensor key, value;               // [batch][heads_kv][rows][head_dim or head_dim_v], of the problem's dtype
    OutputTensor key_cache, value_cache;  // [batch][heads_kv][seq_kv][...], or in pages [page][heads_kv][page_size][...]
    int64_t rows = 1;                     // that key and value have of each sequence
    const int32_t* lengths = nullptr;     // keys that each sequence has so far, [batch]: its new ones come behind them
    const int32_t* counts = nullptr;      // new rows of each sequence, [batch], from 0 to `rows`; null: all have `rows`
    const int32_t* block_table = nullptr; // as DecodeTensors have it, and the next two
    int64_t table_stride = 0;
    int64_t page_size = 0;
    int64_t pages = 0;                    // of the cache, if there is a block table
    // A word of the device, 0xffffffff or what an earlier call left; null: not wanted. It becomes the least number of a sequence whose new
    // rows had no place, if that is less.
    uint32_t* status = nullptr;
};

// Gradients of a loss with respect to query, key, value, bias and sinks, from those with respect to out and lse.
struct BackwardTensors {
    ForwardTensors forward;               // the call that is differentiated; out and lse hold its results and are only read
    InputTensor out_gradient;             // as out; may have stride 0 in any dimension but the last
    const float* lse_gradient = nullptr;  // as lse; null: zero
    OutputTensor query_gradient;          // as query, of the problem's dtype, as are the next two; none may overlap anything else
    OutputTensor key_gradient;            // as key, summed over the query heads that share it
    OutputTensor value_gradient;          // as value, likewise
    float* sink_gradient = nullptr;       // [heads_q], if the problem has sinks; summed over batch and queries
    // As the bias [batch][heads_q][seq_q][seq_kv], any strides: summed over the dimensions whose stride is 0, which are written once, in float32.
    // Null: not wanted.
    OutputTensor bias_gradient;
    void* workspace = nullptr;            // of the device, backward_workspace_bytes(), 16-byte aligned; not shared by concurrent calls
    int64_t workspace_bytes = 0;
    bool deterministic = false;           // gradients are bitwise repeatable; a faster way that is not may be taken otherwise
};

struct AttentionOptions {
    std::string device = "cpu:0";
    int threads = 0;           // CPU: threads that compute; 0: all processors
    DatabaseOptions database;  // `hooks` are replaced by the runtime's own
    bool cache_code = true;    // keep compiled kernels in the user's cache directory
};

// A device with its tuning databases and compiled kernels. Safe to use from several threads; calls on the CPU run one
// after another, calls on a GPU are asynchronous and ordered by their streams.
class Attention {
public:
    // unavailable: no such device, driver or compiler; not_found: an unknown backend.
    static Result<Attention> open(const AttentionOptions& options = {});
    Attention(Attention&&) noexcept;
    Attention& operator=(Attention&&) noexcept;
    ~Attention();  // no call may be running

    // out and lse of `problem` (docs/numerics.md says exactly what). The first call of a kind of problem compiles its kernel
    // (see prepare()); later ones cost microseconds of the host. `stream` is the vendor's handle (hipStream_t, CUstream); null:
    // the default one. invalid_argument names the value and the limit, and nothing is launched.
    Status forward(const Problem& problem, const ForwardTensors& tensors, void* stream = nullptr);

    // out and lse of packed sequences, each as forward() gives it alone: positions, and with them masks, count within the sequence.
    // lse is [heads_q][query_rows], contiguous. The problem's batch is the number of sequences, its seq_q and seq_kv the greatest
    // lengths, shortest_q and shortest_kv the least, if they are given: hints for the choice of a config, no more. It need not say `packed`.
    // Starts are read by the device at the time of the launch. Starts that descend or lie outside the rows, and lengths above the hints, are
    // invalid_argument and name the sequence where the device's memory is the host's; elsewhere starts count as the nearest row, nothing
    // outside the tensors is touched, and lengths above the hints are computed like all others. unsupported: a bias. The rest is as with forward().
    Status forward_packed(const Problem& problem, const ForwardTensors& tensors, const PackedSequences& sequences, void* stream = nullptr);

    // out and lse of a decode problem: query i of a sequence of n keys is aligned with key i + n - seq_q (top left: with key i), so
    // `causal` is the tail of several new queries. Lengths and tables are read by the device at the time of the launch: they
    // may change between calls, and between replays of a captured one, as long as sizes do not. A length outside 0 .. seq_kv is
    // invalid_argument and names the sequence where the device's memory is the host's, and is taken as the nearest of these elsewhere.
    // unsupported: on AMD a bias, and fp32. The rest is as with forward().
    Status decode(const Problem& problem, const DecodeTensors& tensors, void* stream = nullptr);
    // Bytes of workspace that decode() needs for this problem: they depend on its sizes, not on lengths. 0: none.
    Result<int64_t> decode_workspace_bytes(const Problem& problem, int splits = 0) const;

    // Writes new keys and values of a decode problem behind the last ones of each sequence, of which a cache holds seq_kv, in pages at most
    // those that a row of the table has. Lengths, counts and tables are read by the device at the time of the launch; the lengths stay the
    // caller's to change. Nothing outside the cache is written. A sequence whose length or count is negative, whose count is above
    // `rows`, or that has no place for its new rows: invalid_argument that names it, and nothing is launched, where the device's memory is the host's;
    // elsewhere nothing of it is written, and `status` names it. So with a page number that the cache does not have; on a GPU
    // only that page's rows are then left out.
    Status append(const Problem& problem, const AppendTensors& tensors, void* stream = nullptr);

    // Gradients of `problem`, whose operation is `backward` (docs/numerics.md says exactly which). Rows that see
    // nothing contribute zero. unsupported: the device has no backward for the problem (docs/numerics.md). Otherwise as forward().
    Status backward(const Problem& problem, const BackwardTensors& tensors, void* stream = nullptr);

    // Bytes of workspace that backward() needs for this problem: at most proportional to batch * heads_q * seq_q * head_dim.
    Result<int64_t> backward_workspace_bytes(const Problem& problem, bool deterministic = false) const;

    // Gradients of packed sequences, each as backward() gives them alone: out, lse and all gradients lie as forward_packed() has out and lse. What
    // stands in rows of no sequence is not looked at, nor written. The starts are those of the forward; they are checked as there. unsupported: a bias.
    Status backward_packed(const Problem& problem, const BackwardTensors& tensors, const PackedSequences& sequences, void* stream = nullptr);
    // Bytes of workspace that it needs for problem.batch sequences with so many queries together.
    Result<int64_t> backward_packed_workspace_bytes(const Problem& problem, int64_t query_rows) const;

    // Compiles and loads what forward(), backward() or decode() will need for dense, aligned tensors of this problem.
    Status prepare(const Problem& problem);

    // The config that a call of this problem takes, and how it was found.
    LookupResult lookup(const Problem& problem) const;
    const TuningDatabase& database() const;

    // Waits for everything that was launched. Memory of the device, for callers that have no other way to get it.
    Status synchronize();
    Result<void*> allocate(int64_t bytes);
    Status free(void* address);
    Status copy_to_device(void* to, const void* from, int64_t bytes);
    Status copy_to_host(void* to, const void* from, int64_t bytes);

private:
    struct State;
    explicit Attention(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace tilewright
