// Random problems with fixed seeds.
#include "verify/random_problem.h"

#include <algorithm>
#include <iterator>

#include "verify/random.h"

namespace tilewright {

RandomProblem random_problem(uint64_t seed, uint64_t index, DType dtype, Operation operation) {
    uint64_t draws = 0;
    auto below = [&](int64_t count) { return int64_t(hash(seed, 100 + index, draws++) % uint64_t(count)); };
    auto one_in = [&](int64_t count) { return below(count) == 0; };
    auto length = [&] { return one_in(12) ? below(3) : one_in(3) ? 1 + below(16) : one_in(2) ? 64 * (1 + below(4)) : 1 + below(300); };

    constexpr int64_t head_dims[] = {64, 128, 32, 16, 80, 96, 256, 8, 40, 5, 192, 33};
    RandomProblem random;
    Problem& p = random.problem;
    p.dtype = dtype;
    p.batch = 1 + below(3);
    p.heads_kv = 1 + below(3);
    p.heads_q = p.heads_kv * (one_in(2) ? 1 : 1 + below(4));
    p.seq_q = length();
    p.seq_kv = one_in(3) ? p.seq_q : length();
    p.head_dim = one_in(2) ? head_dims[below(2)] : head_dims[below(std::ssize(head_dims))];
    p.head_dim_v = one_in(5) ? head_dims[below(std::ssize(head_dims))] : p.head_dim;
    p.alignment = one_in(4) ? Alignment::top_left : Alignment::bottom_right;
    switch (below(4)) {
        case 0: break;
        case 1: p.window_right = 0; break;
        case 2: p.window_left = below(200), p.window_right = one_in(2) ? 0 : below(100); break;
        default: (one_in(2) ? p.window_left : p.window_right) = below(150); break;
    }
    p.softcap = one_in(4), p.bias = one_in(3), p.alibi = one_in(4), p.sink = one_in(4);

    WorkloadOptions& options = random.options;
    options.seed = hash(seed, 99, index);
    options.layout = all_layouts[below(std::ssize(all_layouts))];
    options.softcap = float(1 + below(50));
    options.spread = one_in(4) ? 0.1 + double(below(40)) / 10 : 1;
    if (one_in(6)) options.scale = float(below(9) - 4) / 16;
    options.lse = !one_in(8);
    for (bool& broadcast : options.broadcast_bias) broadcast = one_in(3);
    if (operation == Operation::backward) {  // the reference computes all rows
        p.operation = operation;
        p.batch = std::min<int64_t>(p.batch, 2), p.heads_q = p.heads_kv * std::min<int64_t>(p.heads_q / p.heads_kv, 2);
        for (int64_t* size : {&p.seq_q, &p.seq_kv}) *size %= 160;
        // The naive form's largest error over a few gradients may be smaller than one rounding of the largest: enough of them for the bound.
        int64_t of_query = p.heads_q * p.seq_q * p.head_dim, of_keys = p.heads_kv * p.seq_kv * std::min(p.head_dim, p.head_dim_v), fewest = std::min(of_query, of_keys);
        if (fewest > 0) p.batch = std::max(p.batch, std::min<int64_t>(64, 4096 / fewest));
    } else if (operation == Operation::decode) {
        p.operation = operation;
        p.batch = 1 + below(6), p.seq_q = one_in(2) ? 1 : 1 + below(16), p.seq_kv = 1 + below(one_in(4) ? 2000 : 300);
        if (p.seq_q > 1 && !one_in(4)) p.window_left = -1, p.window_right = 0;
        if (one_in(2)) p.page_size = 16 << below(4);
        for (int64_t i = 0; i < p.batch; ++i) options.lengths.push_back(int32_t(one_in(5) ? 0 : below(p.seq_kv + 1)));
        constexpr int splits[] = {0, 0, 1, 2, 3, 7, 50};
        random.splits = splits[below(std::ssize(splits))];
    }
    if (operation == Operation::forward && one_in(5)) {  // as many sequences, of lengths up to these
        p.packed = true, p.bias = false, p.batch = 1 + below(8);
        for (int64_t i = 0; i < p.batch; ++i)
            options.query_lengths.push_back(int32_t(one_in(4) ? 0 : below(p.seq_q + 1))), options.lengths.push_back(int32_t(one_in(4) ? 0 : below(p.seq_kv + 1)));
        for (int64_t& rows : options.unused_rows) rows = one_in(2) ? 0 : below(70);
        options.wide_starts = one_in(2);
    }
    return random;
}

std::string describe(const RandomProblem& random) {
    std::string text = to_text(random.problem) + ", " + name(random.options.layout);
    if (random.options.scale) text += ", scale " + std::to_string(*random.options.scale);
    if (random.problem.softcap) text += ", softcap " + std::to_string(random.options.softcap);
    if (random.options.spread != 1) text += ", spread " + std::to_string(random.options.spread);
    if (random.splits) text += ", splits " + std::to_string(random.splits);
    for (size_t i = 0; i < random.options.query_lengths.size(); ++i) text += (i ? " " : ", queries ") + std::to_string(random.options.query_lengths[i]);
    for (size_t i = 0; i < random.options.lengths.size(); ++i) text += (i ? " " : ", lengths ") + std::to_string(random.options.lengths[i]);
    return text;
}

}  // namespace tilewright
