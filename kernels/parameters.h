// What a kernel is told at run time: one plain struct, the same bytes on the host and on every device.
#pragma once
#include "tile/element.h"

namespace tilewright::kernel {

struct Strides {  // in elements; the last dimension has stride 1
    long long batch, head, row;
};

// Which keys a query sees (Specialization::mask). The bounds themselves are in ForwardParameters.
enum class Mask { none, causal, window };

struct ForwardParameters {
    const void *query, *key, *value;
    void* out;
    TILEWRIGHT_GLOBAL float* lse;          // natural logarithm, [batch][heads_q][seq_q], contiguous; null: not wanted
    const void* bias;    // of the element type; broadcast dimensions have stride 0
    const TILEWRIGHT_GLOBAL float* slope;  // ALiBi, [heads_q]
    const TILEWRIGHT_GLOBAL float* sink;   // a logit that takes part in the softmax and has no value, [heads_q]
    Strides query_strides, key_strides, value_strides, out_strides, bias_strides;
    long long bias_column_stride;
    int batch, heads_q, heads_kv, seq_q, seq_kv;
    float scale;          // of the scores, natural units
    float softcap;        // used by kernels specialised for it
    int diagonal;         // query i is aligned with key i + diagonal: seq_kv - seq_q (bottom right) or 0 (top left)
    int window_left;      // an aligned query sees this many keys before itself ...
    int window_right;     // ... and after; "unbounded" is any number that reaches the ends
    int section_heads;    // work order: query heads whose keys and values share the cache
    int tiles;            // of queries, all heads
    float* scores;          // attention_materialized only: [batch][heads_q][seq_q][seq_kv], contiguous
    int phase;              // attention_materialized only: 0 scores, 1 softmax, 2 output
    unsigned* tiles_dealt;  // a counter, zero before and after every launch; not shared by concurrent launches
};

// Sequences of any lengths, one behind the other in the rows of every tensor (Config::packed).
struct PackedParameters {
    // One batch, whose rows are those of all sequences: seq_q and seq_kv count them, and lse is [heads_q][seq_q]. The strides of batches
    // are those of rows, so that the number of a batch is a sequence's first row. `diagonal` is not used.
    ForwardParameters forward;
    // First row of each sequence, and the end of the last: [sequences + 1], taken as the nearest row that there is. They do not
    // descend: where they do, what is computed is not said, but it stays within the tensors.
    const void *query_starts, *key_starts;
    int sequences;
    int wide;      // starts have 64 bits, not 32
    int top_left;  // query i is aligned with key i of its sequence, instead of the last query with the last key
};

template <bool packed> struct ParametersIf { using type = ForwardParameters; };
template <> struct ParametersIf<true> { using type = PackedParameters; };
template <class Config>
using ParametersOf = typename ParametersIf<Config::packed>::type;
TILEWRIGHT_DEVICE const ForwardParameters& forward_of(const ForwardParameters& p) { return p; }
TILEWRIGHT_DEVICE const ForwardParameters& forward_of(const PackedParameters& p) { return p.forward; }
TILEWRIGHT_DEVICE ForwardParameters& forward_of(ForwardParameters& p) { return p; }
TILEWRIGHT_DEVICE ForwardParameters& forward_of(PackedParameters& p) { return p.forward; }

// Decoding: few queries, many keys, as many in each sequence as the device's memory says at the time of the launch.
struct DecodeParameters {
    ForwardParameters forward;  // seq_kv: the most keys that a sequence may have; `diagonal` and the work order are not used
    const TILEWRIGHT_GLOBAL int* lengths;         // keys of each sequence, [batch]; null: all have seq_kv
    // Config::paged only: the pages of each sequence, [batch][table_stride]; what stands behind its last key is never read.
    // The batch strides of key and value are then those of pages, and their rows the keys of a page.
    const TILEWRIGHT_GLOBAL int* block_table;
    long long table_stride;
    int page_shift;  // a page has 2^page_shift keys
    int pages;       // of the cache; 0: not known
    int top_left;    // query i is aligned with key i, instead of the last query with the last key
    int units;       // that the KV tiles of a line are cut into (decode_part.h), at least 1
    // Of parts of items, [2 * units * lines][block_q]: outputs not yet divided, [round_up(head_dim_v, 4)], and (maximum, sum).
    TILEWRIGHT_GLOBAL float* partial_out;
    TILEWRIGHT_GLOBAL float* partial_state;
    TILEWRIGHT_GLOBAL unsigned* arrived;  // parts that are done, of every item, [batch * lines]; zero before and after every launch
};

// New keys and values for a cache, which may lie in pages (Config::paged) as for decoding.
struct AppendParameters {
    const void *key, *value;  // new rows
    void *key_cache, *value_cache;
    Strides key_strides, value_strides, key_cache_strides, value_cache_strides;  // of a cache in pages, the batch strides are those of pages
    const int* lengths;      // keys that each sequence has, [batch]: the place of its first new one
    const int* counts;       // new rows of each sequence, [batch]; null: all have `rows`
    const int* block_table;  // [batch][table_stride]
    long long table_stride;
    int page_shift, pages;   // a page has 2^page_shift keys; pages of the cache
    int batch, heads_kv, rows;
    int capacity;            // keys that a sequence has place for
    unsigned* status;        // becomes the least number of a sequence of which something has no place, if it is less than what is there; may be null
    unsigned* dealt;         // CPU: a counter, zero before
};
constexpr int append_run = 16, append_threads = 128;  // rows of a head that a block copies, and by how many lanes
constexpr int append_runs(int rows) { return (rows + append_run - 1) / append_run; }
TILEWRIGHT_DEVICE int append_blocks(const AppendParameters& p) { return p.batch * p.heads_kv * append_runs(p.rows); }

// Workspaces of the backward hold whole blocks of so many queries; tiles of queries divide it.
constexpr int backward_query_block = 128;
constexpr long long backward_padded(long long seq_q) { return (seq_q + backward_query_block - 1) / backward_query_block * backward_query_block; }

constexpr long long backward_padded_packed(long long query_rows, long long sequences) {
    return sequences == 0 ? 0 : (query_rows / backward_query_block + sequences) * backward_query_block;
}

constexpr int backward_sum_columns(int head_dim) { return head_dim > 64 ? round_up(head_dim, 128) : 64; }
constexpr int backward_least_block_q = 64, backward_most_turns = 2;  // where dq is 2; of a tile of queries, parts that are added up each in turns of their own

struct PlainBackwardParameters {
    ForwardParameters forward;  // the call that is differentiated: `out` and `lse` are its results and only read here
    const void* out_gradient;
    const TILEWRIGHT_GLOBAL float* lse_gradient;  // [batch][heads_q][seq_q], contiguous; null: zero
    void *query_gradient, *key_gradient, *value_gradient;
    TILEWRIGHT_GLOBAL float* sink_gradient;  // [heads_q]; written by kernels specialised for a sink
    Strides out_gradient_strides, query_gradient_strides, key_gradient_strides, value_gradient_strides;
    // Workspaces, [batch][heads_q][padded_queries], written by the prologue.
    TILEWRIGHT_GLOBAL float* log_sums;  // lse in units of log 2 (but see natural_log_sums); infinite where it would be minus infinity and past the end, so that every probability is 0
    TILEWRIGHT_GLOBAL float* deltas;    // dot(out_gradient, out) - lse_gradient
    void *log_sum_parts, *delta_parts;  // the same once more, 16 bytes a query, where an architecture splits them (arch/sm90_statistics.h)
    int padded_queries;  // backward_padded(seq_q)
    int prepared_heads;  // Config::persistent alone: KV heads, counted through all batches, whose queries the prologue does; the pass over keys does the others'
    // Config::dq alone. Cleared by the prologue for dq 1, stored by the first tile of keys for 2: sums of dS K, [batch][heads_q][padded_queries][backward_sum_columns(head_dim)], of each
    // tile of queries in an order that the architecture likes. For dq 2, cleared by the prologue: of each part of each tile of queries, how many tiles
    // of keys have added to it, [batch][heads_q][padded_queries / block_q][parts], of which there are as many as the architecture likes (backward_most_turns).
    float* query_sums;
    unsigned* turns;
    // Config::persistent alone (arch/sm90_backward_rows.h), cleared by the prologue: backward_counts() of what is drawn and done of the work row by row that
    // the pass over keys does.
    unsigned* counts;
};
constexpr long long backward_counts(long long all_kv_heads) { return 2 + 2 * all_kv_heads; }

// All that a backward may be told. Kernels of problems with a bias or of packed sequences take it whole, others what it begins with.
struct BackwardParameters : PlainBackwardParameters {
    void* bias_gradient;  // of the element type; summed over the dimensions that have stride 0 here; null: not wanted
    Strides bias_gradient_strides;
    long long bias_gradient_column_stride;
    // Config::packed: as PackedParameters has them. Each sequence has whole blocks of padded queries, of `backward_query_block`, in slots as tile.h
    // has them for tiles.
    const void *query_starts, *key_starts;
    int sequences, wide, top_left;
};
// A bias may be so large that log2(e) times it, and the log-sum of its row, would overflow.
template <class Config>
constexpr bool natural_log_sums = Config::bias;
template <class Config>
using BackwardParametersOf = typename Choose<Config::bias || Config::packed, BackwardParameters, PlainBackwardParameters>::type;

template <class Pointer>
TILEWRIGHT_DEVICE Pointer row_of(Pointer base, const Strides& strides, int batch, int head, int row) {
    return base + (batch * strides.batch + head * strides.head + row * strides.row);
}

}  // namespace tilewright::kernel
