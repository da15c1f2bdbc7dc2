// What is to be computed: everything that changes the answer or the best kernel, and nothing else.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/dtype.h"
#include "tilewright/status.h"

namespace tilewright {

enum class Operation : int { forward = 1, backward = 2, decode = 3 };  // stored in databases: frozen

const char* name(Operation operation);                                    // "forward", "backward", "decode"

// Where the causal diagonal or window is anchored when seq_q != seq_kv.
enum class Alignment : int { bottom_right = 1, top_left = 2 };  // frozen

// softmax(scale * Q K^T [softcap] [+ bias] [+ ALiBi], over the visible keys [and the sink]) V, per batch and query head.
// Query head h uses KV head h / (heads_q / heads_kv). The exact meaning of every field is in docs/numerics.md.
struct Problem {
    Operation operation = Operation::forward;
    int64_t batch = 1;
    int64_t heads_q = 1;
    int64_t heads_kv = 1;
    int64_t seq_q = 1;
    int64_t seq_kv = 1;
    int64_t head_dim = 64;    // of query and key
    int64_t head_dim_v = 64;  // of value and out
    DType dtype = DType::bf16;
    Alignment alignment = Alignment::bottom_right;
    int64_t window_left = -1;   // aligned query i sees keys i - left .. i + right, inclusive; -1: unbounded
    int64_t window_right = -1;  // causal is (-1, 0)
    bool softcap = false;
    bool bias = false;
    bool alibi = false;
    bool sink = false;
    bool deterministic = false;  // of a backward alone: gradients are bitwise repeatable, as the results of forward and decode always are
    int64_t page_size = 0;  // decoding alone: keys of a page, a power of two from 16 on; 0: keys and values do not lie in pages
    bool packed = false;    // forward and backward: the rows of `batch` sequences lie one behind the other in every tensor
    // Decoding and packed sequences have from so many keys to seq_kv, as kv_lengths() says, and packed ones from so many queries to seq_q, as
    // query_lengths() does; -1: all have that many. A seed of those lengths.
    int64_t shortest_q = -1, shortest_kv = -1, length_seed = 0;

    bool causal() const { return window_left == -1 && window_right == 0; }
    bool windowed() const { return window_left != -1 || window_right > 0; }
    bool operator==(const Problem&) const = default;
};

// Largest sequence, head dimension and other limits are stated in the message of a failed check.
Status validate(const Problem& problem);

// The compact text used everywhere (options, database key, benchmark rows), parts in a fixed order, defaults left out:
//   forward:b4,hq32,hkv8,sq4096,skv4096,d128,bf16,causal
//   decode:b64,hq32,hkv8,sq1,skv=loguniform(128,32768),d128,bf16,page64,seed7
//   forward:b64,hq32,hkv8,sq=loguniform(64,8192),skv=loguniform(64,8192),d128,bf16,causal,packed
// Parts: b hq hkv sq skv d dv, a dtype, causal | window<left>:<right>, topleft, softcap, bias, alibi, sink; backward also has deterministic, decode page, the others packed;
// decode and packed sequences skv=loguniform(shortest,longest) and its seed, the latter sq=loguniform(shortest,longest) too.
// Defaults: b1, hq1, hkv = hq, sq1, skv = sq, d64, dv = d, bf16, no mask, bottom right, no pages, not packed, seed0.
std::string to_text(const Problem& problem);
// Accepts the parts in any order; an unknown, repeated or malformed part is invalid_argument and named. The result is valid.
Result<Problem> parse_problem(std::string_view text);

// Keys of each sequence, [batch]: seq_kv, or drawn from shortest_kv .. seq_kv such that every doubling of length is as likely as
// every other. The same numbers on every machine. The problem is valid.
std::vector<int32_t> kv_lengths(const Problem& problem);
// Likewise of queries. A sequence stands where it stands among those of keys: with the same bounds it has as many queries as keys.
std::vector<int32_t> query_lengths(const Problem& problem);
// One sequence of the problem as a problem: one batch, not packed, with so many queries and keys.
Problem single_sequence(Problem problem, int64_t seq_q, int64_t seq_kv);
// Query-key pairs that the mask lets through, per head, of a sequence of seq_q queries and seq_kv keys.
int64_t visible_pairs(const Problem& problem);
// Floating-point operations of the products over the visible pairs of all sequences, the field's convention: 2 * pairs * (d + dv) per
// head, of a backward 2 * pairs * (3 d + 2 dv), whatever is computed again.
double useful_flops(const Problem& problem);

}  // namespace tilewright
