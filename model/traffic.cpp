// Bytes, operations and exponentials of tiled and of standard attention.
#include "model/traffic.h"

#include <algorithm>

namespace tilewright {
namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

double heads(const Problem& problem) { return double(problem.batch) * problem.heads_q; }

// KV tiles that the query tile with rows [first, last] sees.
int64_t visible_kv_tiles(const Problem& problem, const Config& config, int64_t first, int64_t last) {
    int64_t diagonal = problem.alignment == Alignment::bottom_right ? problem.seq_kv - problem.seq_q : 0;
    int64_t begin = problem.window_left < 0 ? 0 : std::max<int64_t>(0, first + diagonal - problem.window_left);
    int64_t end = problem.window_right < 0 ? problem.seq_kv : std::min(problem.seq_kv, last + diagonal + 1 + problem.window_right);
    return end > begin ? divide_up(end, config.block_kv) - begin / config.block_kv : 0;
}

// Keys of a sequence that any of its queries sees.
double visible_keys(const Problem& sequence) {
    int64_t diagonal = sequence.alignment == Alignment::bottom_right ? sequence.seq_kv - sequence.seq_q : 0;
    int64_t begin = sequence.window_left < 0 ? 0 : std::max<int64_t>(0, diagonal - sequence.window_left);
    int64_t end = sequence.window_right < 0 ? sequence.seq_kv : std::min(sequence.seq_kv, sequence.seq_q + diagonal + sequence.window_right);
    return double(std::max<int64_t>(0, end - begin));
}

// Calls `take` with sequences of the problem, each as a problem of one batch, and with how many it stands for: all where they are alike, of
// those that differ at most `largest_sample`.
template <class Take>
void for_sequences(const Problem& problem, Take&& take) {
    constexpr size_t largest_sample = 256;
    if (problem.shortest_q == -1 && problem.shortest_kv == -1) return take(single_sequence(problem, problem.seq_q, problem.seq_kv), double(problem.batch));
    const std::vector<int32_t> queries = query_lengths(problem), keys = kv_lengths(problem);
    const size_t count = std::min(keys.size(), largest_sample);
    for (size_t i = 0; i < count; ++i) take(single_sequence(problem, queries[i], keys[i]), double(keys.size()) / double(count));
}

// Queries times keys of all sequences and query heads, hidden or not.
double pairs_of(const Problem& problem) {
    double pairs = 0;
    for_sequences(problem, [&](const Problem& one, double count) { pairs += count * double(one.heads_q) * double(one.seq_q) * double(one.seq_kv); });
    return pairs;
}

}  // namespace

double compulsory_bytes(const Problem& problem) {
    double query_rows = 0, kv_rows = 0;
    for_sequences(problem, [&](const Problem& one, double count) {
        query_rows += count * double(one.heads_q * one.seq_q), kv_rows += count * double(one.heads_kv) * visible_keys(one);
    });
    double elements = (query_rows + kv_rows) * (problem.head_dim + problem.head_dim_v);  // Q and out; K and V
    if (problem.bias) elements += query_rows * problem.seq_kv;
    double bytes = elements * size_of(problem.dtype) + query_rows * sizeof(float);
    if (problem.operation != Operation::backward) return bytes;
    // Q, K, V, out, dOut, lse and bias are read, dQ, dK, dV and dBias written.
    double gradients = (query_rows + double(problem.batch) * problem.heads_kv * problem.seq_kv) * (problem.head_dim + problem.head_dim_v);
    if (problem.bias) gradients += query_rows * problem.seq_kv;
    return bytes + gradients * size_of(problem.dtype);
}

double score_matrix_bytes(const Problem& problem) { return pairs_of(problem) * double(size_of(problem.dtype)); }

Work standard_work(const Problem& problem) {
    double pairs = pairs_of(problem);
    // Written by the first product, read and written by the softmax, read by the second product.
    return {compulsory_bytes(problem) + 4 * score_matrix_bytes(problem), 2 * pairs * (problem.head_dim + problem.head_dim_v), pairs};
}

int64_t keys_together(const Problem& problem) {
    if (!problem.packed) return problem.seq_kv;
    double keys = 0;
    for_sequences(problem, [&](const Problem& one, double count) { keys += count * double(one.seq_kv); });
    return int64_t(keys);
}

TileCounts count_tiles(const Problem& problem, const Config& config, int64_t rows_apart) {
    if (problem.packed) {
        TileCounts all;
        double query_tiles = 0;
        for_sequences(problem, [&](const Problem& one, double count) {
            const TileCounts counts = count_tiles(one, config, rows_apart);
            query_tiles += count * double(counts.query_tiles), all.kv_tiles += count * counts.kv_tiles, all.multiplied += count * counts.multiplied;
            all.longest = std::max(all.longest, counts.longest), all.heads = counts.heads;
        });
        all.query_tiles = int64_t(query_tiles + 0.5);
        return all;
    }
    TileCounts counts;
    int64_t group = config.packs_heads ? problem.heads_q / problem.heads_kv : 1;
    counts.heads = problem.batch * (problem.heads_q / group);
    int64_t rows = problem.seq_q * group;
    counts.query_tiles = divide_up(rows, config.block_q);
    int64_t step = divide_up(std::max<int64_t>(counts.query_tiles, 1), 16384), sampled = 0;
    for (int64_t tile = 0; tile < counts.query_tiles; tile += step, ++sampled) {
        int64_t first = tile * config.block_q, last = std::min(rows, first + config.block_q) - 1;
        double kv_tiles = double(visible_kv_tiles(problem, config, first / group, last / group));
        counts.kv_tiles += kv_tiles;
        int64_t part_rows = rows_apart > 0 ? std::min<int64_t>(rows_apart, config.block_q) : config.block_q;
        for (int64_t part = first; part <= last; part += part_rows)
            counts.multiplied += double(visible_kv_tiles(problem, config, part / group, std::min(last, part + part_rows - 1) / group)) * part_rows / config.block_q;
        counts.longest = std::max(counts.longest, kv_tiles);
    }
    if (sampled > 0) counts.kv_tiles *= double(counts.query_tiles) / sampled, counts.multiplied *= double(counts.query_tiles) / sampled;
    return counts;
}

Work tiled_work(const Problem& problem, const Config& config, int64_t padded_dims, int64_t rows_apart) {
    if (problem.packed) {
        Work all;
        for_sequences(problem, [&](const Problem& one, double count) {
            const Work work = tiled_work(one, config, padded_dims, rows_apart);
            all.bytes += count * work.bytes, all.matrix_flops += count * work.matrix_flops, all.exponentials += count * work.exponentials;
        });
        return all;
    }
    TileCounts counts = count_tiles(problem, config, rows_apart);
    double tiles = counts.kv_tiles * counts.heads, pairs = counts.multiplied * counts.heads * config.block_q * config.block_kv;
    double query_bytes = heads(problem) * problem.seq_q * ((problem.head_dim + problem.head_dim_v) * size_of(problem.dtype) + sizeof(float));
    // A last KV tile that is cut short is read only as far as there are keys.
    double keys = std::min(tiles * config.block_kv, double(counts.heads) * counts.query_tiles * problem.seq_kv);
    double kv_bytes = keys * (problem.head_dim + problem.head_dim_v) * size_of(problem.dtype);
    double bias_bytes = problem.bias ? heads(problem) * problem.seq_q * problem.seq_kv * size_of(problem.dtype) : 0;
    if (padded_dims == 0) padded_dims = problem.head_dim + problem.head_dim_v;
    return {query_bytes + kv_bytes + bias_bytes, 2 * pairs * padded_dims, pairs};
}

}  // namespace tilewright
