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
double visible_keys(const Problem& problem, int64_t seq_kv) {
    int64_t diagonal = problem.alignment == Alignment::bottom_right ? seq_kv - problem.seq_q : 0;
    int64_t begin = problem.window_left < 0 ? 0 : std::max<int64_t>(0, diagonal - problem.window_left);
    int64_t end = problem.window_right < 0 ? seq_kv : std::min(seq_kv, problem.seq_q + diagonal + problem.window_right);
    return double(std::max<int64_t>(0, end - begin));
}

}  // namespace

double compulsory_bytes(const Problem& problem) {
    double query_rows = heads(problem) * problem.seq_q, kv_rows = double(problem.batch) * problem.heads_kv * visible_keys(problem, problem.seq_kv);
    if (problem.shortest_kv != -1) {
        kv_rows = 0;
        for (int32_t length : kv_lengths(problem)) kv_rows += double(problem.heads_kv) * visible_keys(problem, length);
    }
    double elements = (query_rows + kv_rows) * (problem.head_dim + problem.head_dim_v);  // Q and out; K and V
    if (problem.bias) elements += query_rows * problem.seq_kv;
    double bytes = elements * size_of(problem.dtype) + query_rows * sizeof(float);
    if (problem.operation != Operation::backward) return bytes;
    // Q, K, V, out, dOut, lse and bias are read, dQ, dK, dV and dBias written.
    double gradients = (query_rows + double(problem.batch) * problem.heads_kv * problem.seq_kv) * (problem.head_dim + problem.head_dim_v);
    if (problem.bias) gradients += query_rows * problem.seq_kv;
    return bytes + gradients * size_of(problem.dtype);
}

double score_matrix_bytes(const Problem& problem) {
    return heads(problem) * problem.seq_q * problem.seq_kv * size_of(problem.dtype);
}

Work standard_work(const Problem& problem) {
    double pairs = heads(problem) * problem.seq_q * problem.seq_kv;
    // Written by the first product, read and written by the softmax, read by the second product.
    return {compulsory_bytes(problem) + 4 * score_matrix_bytes(problem), 2 * pairs * (problem.head_dim + problem.head_dim_v), pairs};
}

TileCounts count_tiles(const Problem& problem, const Config& config, int64_t rows_apart) {
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
