// Checks a problem and counts its work.
#include "tilewright/problem.h"

#include <algorithm>

namespace tilewright {
namespace {

constexpr int64_t largest_sequence = int64_t{1} << 29;  // sums of three positions stay below 2^31 in the kernels
constexpr int64_t largest_heads = 65536, largest_batch = int64_t{1} << 24, largest_head_dim = 256;

Status in_range(const char* what, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return {};
    return invalid_argument(std::string(what) + " is " + std::to_string(value) + "; it must be from " + std::to_string(least) + " to " + std::to_string(most));
}

}  // namespace

Status validate(const Problem& problem) {
    TILEWRIGHT_RETURN_IF_ERROR(in_range("operation", static_cast<int>(problem.operation), 1, 3));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("dtype", static_cast<int>(problem.dtype), 1, 3));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("alignment", static_cast<int>(problem.alignment), 1, 2));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("batch", problem.batch, 0, largest_batch));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("heads_q", problem.heads_q, 1, largest_heads));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("heads_kv", problem.heads_kv, 1, largest_heads));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("seq_q", problem.seq_q, 0, largest_sequence));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("seq_kv", problem.seq_kv, 0, largest_sequence));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("head_dim", problem.head_dim, 1, largest_head_dim));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("head_dim_v", problem.head_dim_v, 1, largest_head_dim));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("window_left", problem.window_left, -1, largest_sequence));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("window_right", problem.window_right, -1, largest_sequence));
    if (problem.heads_q % problem.heads_kv != 0)
        return invalid_argument("heads_q is " + std::to_string(problem.heads_q) + "; it must be a multiple of heads_kv, " + std::to_string(problem.heads_kv));
    if (int64_t rows = problem.batch * problem.heads_q * ((problem.seq_q + 15) / 16); rows >= int64_t{1} << 31)
        return invalid_argument("batch * heads_q * seq_q / 16 is " + std::to_string(rows) + "; it must be below 2147483648");
    return {};
}

int64_t visible_pairs(const Problem& problem) {
    int64_t pairs = 0, diagonal = problem.alignment == Alignment::bottom_right ? problem.seq_kv - problem.seq_q : 0;
    if (problem.window_left == -1 && problem.window_right == -1) return problem.seq_q * problem.seq_kv;
    for (int64_t query = 0; query < problem.seq_q; ++query) {
        int64_t aligned = query + diagonal;
        int64_t begin = problem.window_left == -1 ? 0 : std::max<int64_t>(0, aligned - problem.window_left);
        int64_t end = problem.window_right == -1 ? problem.seq_kv : std::min(problem.seq_kv, aligned + problem.window_right + 1);
        pairs += std::max<int64_t>(0, end - begin);
    }
    return pairs;
}

double useful_flops(const Problem& problem) {
    return 2.0 * static_cast<double>(problem.batch * problem.heads_q) * static_cast<double>(visible_pairs(problem)) *
           static_cast<double>(problem.head_dim + problem.head_dim_v);
}

}  // namespace tilewright
