// Which rows of a problem are compared with the reference.
#include <algorithm>
#include <set>

#include "verify/random.h"
#include "verify/reference.h"

namespace tilewright {

std::vector<RowIndex> all_rows(const Problem& p) {
    std::vector<RowIndex> rows;
    rows.reserve(size_t(p.batch * p.heads_q * p.seq_q));
    for (int64_t b = 0; b < p.batch; ++b)
        for (int64_t h = 0; h < p.heads_q; ++h)
            for (int64_t i = 0; i < p.seq_q; ++i) rows.push_back({b, h, i});
    return rows;
}

std::vector<RowIndex> sample_rows(const Problem& p, int64_t count, uint64_t seed) {
    int64_t heads = p.batch * p.heads_q, total = heads * p.seq_q;
    if (total <= count) return all_rows(p);
    int64_t diagonal = p.alignment == Alignment::bottom_right ? p.seq_kv - p.seq_q : 0;
    std::vector<int64_t> edges{0, p.seq_q};
    for (int64_t size : {16, 32, 48, 64, 80, 96, 128, 192, 256})  // the edges of the first and the last tile of any height
        edges.insert(edges.end(), {size, (p.seq_q - 1) / size * size});
    edges.push_back(-diagonal);  // the first query below a causal diagonal that starts below the first key
    if (p.window_left >= 0) edges.push_back(p.window_left - diagonal);
    if (p.window_right >= 0) edges.push_back(p.seq_kv - p.window_right - diagonal);

    std::set<int64_t> chosen;  // linear indices (head, query)
    uint64_t draw = 0;
    for (int64_t edge : edges)
        for (int64_t query : {edge - 1, edge})
            if (query >= 0 && query < p.seq_q && int64_t(chosen.size()) < count)
                chosen.insert(int64_t(hash(seed, 0, draw++) % uint64_t(heads)) * p.seq_q + query);
    while (int64_t(chosen.size()) < count) chosen.insert(int64_t(hash(seed, 0, draw++) % uint64_t(total)));

    std::vector<RowIndex> rows;
    for (int64_t linear : chosen) rows.push_back({linear / p.seq_q / p.heads_q, linear / p.seq_q % p.heads_q, linear % p.seq_q});
    return rows;
}

}  // namespace tilewright
