// Checks a problem and counts its work.
#include "tilewright/problem.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tilewright {
namespace {

constexpr int64_t largest_sequence = int64_t{1} << 29;  // sums of three positions stay below 2^31 in the kernels
constexpr int64_t largest_heads = 65536, largest_batch = int64_t{1} << 24, largest_head_dim = 576;  // GPUs take less
constexpr int64_t smallest_page = 16, largest_page = int64_t{1} << 24, largest_seed = (int64_t{1} << 32) - 1;

struct Range {
    const char* what;
    int64_t Problem::*member;
    int64_t least, most;
};
constexpr Range ranges[] = {{"batch", &Problem::batch, 0, largest_batch},
                            {"heads_q", &Problem::heads_q, 1, largest_heads},
                            {"heads_kv", &Problem::heads_kv, 1, largest_heads},
                            {"seq_q", &Problem::seq_q, 0, largest_sequence},
                            {"seq_kv", &Problem::seq_kv, 0, largest_sequence},
                            {"head_dim", &Problem::head_dim, 1, largest_head_dim},
                            {"head_dim_v", &Problem::head_dim_v, 1, largest_head_dim},
                            {"window_left", &Problem::window_left, -1, largest_sequence},
                            {"window_right", &Problem::window_right, -1, largest_sequence}};

Status out_of(const char* what, int64_t value, int64_t least, int64_t most) {
    return invalid_argument(std::string(what) + " is " + std::to_string(value) + "; it must be from " + std::to_string(least) + " to " + std::to_string(most));
}

inline Status in_range(const char* what, int64_t value, int64_t least, int64_t most) {
    return value < least || value > most ? out_of(what, value, least, most) : Status();
}

Status check_sequences(const Problem& problem) {
    const bool ragged_q = problem.shortest_q != -1, ragged_kv = problem.shortest_kv != -1, decodes = problem.operation == Operation::decode;
    auto is_for = [](const char* what, int64_t value, const char* problems) {
        return invalid_argument(std::string(what) + " is " + std::to_string(value) + "; " + problems);
    };
    if (problem.page_size != 0 && !decodes) return is_for("page_size", problem.page_size, "pages are for decode problems");
    if (problem.packed && decodes) return invalid_argument("packed sequences are for forward and backward problems, not decode");
    if (ragged_q && !problem.packed) return is_for("shortest_q", problem.shortest_q, "numbers of queries that differ are for packed problems");
    if (ragged_kv && !problem.packed && !decodes) return is_for("shortest_kv", problem.shortest_kv, "lengths that differ are for decode and packed problems");
    if (problem.page_size != 0) {
        TILEWRIGHT_RETURN_IF_ERROR(in_range("page_size", problem.page_size, smallest_page, largest_page));
        if (!std::has_single_bit(static_cast<uint64_t>(problem.page_size)))
            return invalid_argument("page_size is " + std::to_string(problem.page_size) + "; it must be a power of two");
    }
    if (ragged_q) TILEWRIGHT_RETURN_IF_ERROR(in_range("shortest_q", problem.shortest_q, 1, problem.seq_q));
    if (ragged_kv) TILEWRIGHT_RETURN_IF_ERROR(in_range("shortest_kv", problem.shortest_kv, 1, problem.seq_kv));
    return in_range("length_seed", problem.length_seed, 0, ragged_q || ragged_kv ? largest_seed : 0);
}

// A number from 0 on and below 1, of a seed and a position.
double random_part(uint64_t seed, uint64_t position) {
    uint64_t x = seed * 0xd1342543de82ef95 + position * 0x9e3779b97f4a7c15 + 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return static_cast<double>((x ^ x >> 31) >> 11) * 0x1p-53;
}

// log2(ratio) with a straight line within each doubling, and its inverse below: exact, so that no machine's logarithm matters.
double doublings_of(double ratio) {
    int exponent = 0;
    const double part = std::frexp(ratio, &exponent);  // ratio = part * 2^exponent, part from 0.5 on and below 1
    return exponent - 1 + (2 * part - 1);
}
double power_of(double doublings) {
    const double whole = std::floor(doublings);
    return std::ldexp(1 + (doublings - whole), static_cast<int>(whole));
}

// sum over i from 0 to count - 1 of i + first, held within 0 .. most
int64_t sum_of_ramp(int64_t first, int64_t count, int64_t most) {
    auto below = [&](int64_t end) {  // the same over all numbers below `end`
        if (end <= 0) return int64_t{0};
        return end <= most ? end * (end - 1) / 2 : most * (most + 1) / 2 + (end - most - 1) * most;
    };
    return below(first + count) - below(first);
}

int64_t pairs_of(const Problem& problem, int64_t seq_q, int64_t seq_kv) {
    // A query sees the keys from `begin` to `end`, both held within the sequence: the sum of their differences.
    const int64_t diagonal = problem.alignment == Alignment::bottom_right ? seq_kv - seq_q : 0;
    const int64_t begins = problem.window_left == -1 ? 0 : sum_of_ramp(diagonal - problem.window_left, seq_q, seq_kv);
    const int64_t ends = problem.window_right == -1 ? seq_q * seq_kv : sum_of_ramp(diagonal + problem.window_right + 1, seq_q, seq_kv);
    return ends - begins;
}

std::vector<int32_t> drawn_lengths(const Problem& problem, int64_t least, int64_t most) {
    std::vector<int32_t> lengths(static_cast<size_t>(problem.batch), static_cast<int32_t>(most));
    if (least == -1) return lengths;
    const auto shortest = static_cast<double>(least), longest = static_cast<double>(most);
    const double doublings = doublings_of(longest / shortest);
    for (size_t i = 0; i < lengths.size(); ++i) {
        const double length = shortest * power_of(doublings * random_part(static_cast<uint64_t>(problem.length_seed), i));
        lengths[i] = static_cast<int32_t>(std::min(length, longest));
    }
    return lengths;
}

}  // namespace

Status validate(const Problem& problem) {
    TILEWRIGHT_RETURN_IF_ERROR(in_range("operation", static_cast<int>(problem.operation), 1, 3));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("dtype", static_cast<int>(problem.dtype), 1, 3));
    TILEWRIGHT_RETURN_IF_ERROR(in_range("alignment", static_cast<int>(problem.alignment), 1, 2));
    for (const Range& range : ranges)
        if (const int64_t value = problem.*range.member; value < range.least || value > range.most) return out_of(range.what, value, range.least, range.most);
    if (problem.heads_q % problem.heads_kv != 0)
        return invalid_argument("heads_q is " + std::to_string(problem.heads_q) + "; it must be a multiple of heads_kv, " + std::to_string(problem.heads_kv));
    if (problem.deterministic && problem.operation != Operation::backward)
        return invalid_argument("deterministic is for backward problems; " + std::string(name(problem.operation)) + " always is");
    TILEWRIGHT_RETURN_IF_ERROR(check_sequences(problem));
    if (int64_t rows = problem.batch * problem.heads_q * ((problem.seq_q + 15) / 16); rows >= int64_t{1} << 31)
        return invalid_argument("batch * heads_q * seq_q / 16 is " + std::to_string(rows) + "; it must be below 2147483648");
    return {};
}

std::vector<int32_t> kv_lengths(const Problem& problem) { return drawn_lengths(problem, problem.shortest_kv, problem.seq_kv); }
std::vector<int32_t> query_lengths(const Problem& problem) { return drawn_lengths(problem, problem.shortest_q, problem.seq_q); }

Problem single_sequence(Problem problem, int64_t seq_q, int64_t seq_kv) {
    problem.batch = 1, problem.packed = false, problem.shortest_q = problem.shortest_kv = -1, problem.length_seed = 0;
    problem.seq_q = seq_q, problem.seq_kv = seq_kv;
    return problem;
}

int64_t visible_pairs(const Problem& problem) { return pairs_of(problem, problem.seq_q, problem.seq_kv); }

double useful_flops(const Problem& problem) {
    double pairs = static_cast<double>(problem.batch) * static_cast<double>(visible_pairs(problem));
    if (problem.shortest_q != -1 || problem.shortest_kv != -1) {
        const std::vector<int32_t> queries = query_lengths(problem), keys = kv_lengths(problem);
        pairs = 0;
        for (size_t i = 0; i < keys.size(); ++i) pairs += static_cast<double>(pairs_of(problem, queries[i], keys[i]));
    }
    // Two products; of a backward five: S, dQ and dK over head_dim, dP and dV over head_dim_v.
    int64_t columns = problem.operation == Operation::backward ? 3 * problem.head_dim + 2 * problem.head_dim_v : problem.head_dim + problem.head_dim_v;
    return 2.0 * static_cast<double>(problem.heads_q) * pairs * static_cast<double>(columns);
}

}  // namespace tilewright
