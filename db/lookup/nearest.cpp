// Distance in log space: twice as long is as far from a problem as half as long.
#include "db/lookup/nearest.h"

#include <algorithm>
#include <cmath>

#include "tilewright/tuning.h"

namespace tilewright::lookup {
namespace {

// The query rows of a typical tile: how much work there is to deal out, whatever tile is chosen later.
constexpr double nominal_block_q = 128;
// Beyond so many blocks a unit the machine is full and more of them change nothing; below the lower bound it is idle.
constexpr double fullest = 5, emptiest = -6;

double log2_of(int64_t value) { return std::log2(static_cast<double>(std::max<int64_t>(value, 1))); }

double square(double x) { return x * x; }

// Lengths spread over doublings: the middle one.
double middle(int64_t shortest, int64_t longest) { return shortest == -1 ? log2_of(longest) : (log2_of(shortest) + log2_of(longest)) / 2; }

}  // namespace

Sizes sizes_of(const Problem& p, int units) {
    Sizes sizes;
    sizes.seq_q = middle(p.shortest_q, p.seq_q);
    sizes.seq_kv = middle(p.shortest_kv, p.seq_kv);
    sizes.spread = log2_of(p.batch * p.heads_q);
    const double tiles = std::max(std::ceil((p.shortest_q == -1 ? static_cast<double>(p.seq_q) : std::exp2(sizes.seq_q)) / nominal_block_q), 1.0);
    sizes.fullness = std::clamp(sizes.spread + std::log2(tiles) - log2_of(units), emptiest, fullest);
    sizes.group = log2_of(p.heads_q / std::max<int64_t>(p.heads_kv, 1));
    sizes.window = log2_of(p.window_left + 1) + log2_of(p.window_right + 1);
    sizes.pages = p.page_size != 0 ? 1 : 0;
    sizes.packed = p.packed ? 1 : 0;
    return sizes;
}

double distance(const Sizes& a, const Sizes& b) {
    // The group only says how many heads may share a tile, and batch x heads already counts through fullness.
    return std::sqrt(square(a.seq_q - b.seq_q) + square(a.seq_kv - b.seq_kv) + square(a.fullness - b.fullness) +
                     0.25 * square(a.group - b.group) + 0.25 * square(a.pages - b.pages) + 0.25 * square(a.packed - b.packed) + square(a.window - b.window) + 0.0025 * square(a.spread - b.spread));
}

unsigned differences(const Problem& a, const Problem& b) {
    unsigned bits = 0;
    if (a.batch != b.batch) bits |= differs_batch;
    if (a.heads_q != b.heads_q || a.heads_kv != b.heads_kv) bits |= differs_heads;
    const bool other_seed = a.length_seed != b.length_seed;
    if (a.seq_q != b.seq_q || a.shortest_q != b.shortest_q || (other_seed && a.packed)) bits |= differs_seq_q;
    if (a.seq_kv != b.seq_kv || a.shortest_kv != b.shortest_kv || other_seed) bits |= differs_seq_kv;
    if (a.packed != b.packed) bits |= differs_packed;
    if (a.page_size != b.page_size) bits |= differs_page;
    if (a.deterministic != b.deterministic) bits |= differs_deterministic;
    if (a.window_left != b.window_left || a.window_right != b.window_right) bits |= differs_window;
    return bits;
}

}  // namespace tilewright::lookup
