// The work of attention: bytes to and from memory, matrix operations, exponentials; tiled and standard.
#pragma once
#include <cstdint>

#include "tilewright/config.h"
#include "tilewright/problem.h"

namespace tilewright {

struct Work {
    double bytes = 0;         // to and from outer memory if no cache helps
    double matrix_flops = 0;  // really done: whole tiles, padded head dimensions included
    double exponentials = 0;

    double intensity() const { return bytes > 0 ? matrix_flops / bytes : 0; }  // operations per byte
};

// Q, bias and what is visible of K and V read once, out and lse written once; of a backward also the gradients: what no kernel can avoid.
double compulsory_bytes(const Problem& problem);
// Keys of a head that lie together: of its sequence, or of all packed ones.
int64_t keys_together(const Problem& problem);
// seq_q * seq_kv scores of one head in the element type, times heads_q, over all sequences: what tiling never writes.
double score_matrix_bytes(const Problem& problem);

// Standard attention: scores written, read and rewritten by the softmax, read by the second product; nothing is skipped
// under a mask.
Work standard_work(const Problem& problem);
// Tiled attention: each tile of queries reads the keys and values of its visible KV tiles. `padded_dims`: head
// dimensions of key and value together as the products compute them; 0: not padded. `rows_apart`: see count_tiles.
Work tiled_work(const Problem& problem, const Config& config, int64_t padded_dims = 0, int64_t rows_apart = 0);

// How the tiles of queries of one head (of one KV head, where heads are packed) share the KV tiles.
struct TileCounts {
    int64_t query_tiles = 0;   // per head, of packed sequences all together
    double kv_tiles = 0;       // over all query tiles of a head; sampled where there are more than 16384 query tiles
    double multiplied = 0;     // as kv_tiles, less the parts of tiles that none of `rows_apart` neighbouring rows sees
    double longest = 0;        // most KV tiles of one query tile
    int64_t heads = 0;         // batch * heads, or batch * KV heads where heads are packed; sequences that are packed count as one batch
};
// `rows_apart`: rows that pass over a KV tile which none of them sees, although others of their tile do; 0: all rows of a tile.
TileCounts count_tiles(const Problem& problem, const Config& config, int64_t rows_apart = 0);

}  // namespace tilewright
