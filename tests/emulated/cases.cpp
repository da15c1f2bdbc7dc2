// Builds a case's buffers, runs an emulated kernel on them and holds the result against float64.
#include "cases.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>

namespace tilewright::emulated {
namespace {

using kernel::ForwardParameters;
using kernel::Mask;
using kernel::Strides;

constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

int size_of(Type type) { return type == Type::fp32 ? 4 : 2; }
float read(const char* from, Type type) {
    if (type == Type::fp32) {
        float x;
        return std::memcpy(&x, from, 4), x;
    }
    uint16_t bits;
    std::memcpy(&bits, from, 2);
    if (type == Type::fp16) return float(__builtin_bit_cast(_Float16, bits));
    return __builtin_bit_cast(float, uint32_t(bits) << 16);
}
void write(char* to, float x, Type type) {
    if (type == Type::fp32) {
        std::memcpy(to, &x, 4);
    } else if (type == Type::fp16) {
        _Float16 half = _Float16(x);
        std::memcpy(to, &half, 2);
    } else {
        uint32_t bits = __builtin_bit_cast(uint32_t, x);
        uint16_t upper = x == x ? uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16) : uint16_t(0x7fc0);
        std::memcpy(to, &upper, 2);
    }
}

// [batch][heads][rows][columns] with gaps behind rows and heads, and space before and after; all bytes 0xff, NaN, at first.
struct Tensor {
    Type type;
    int columns;
    Strides strides;
    std::vector<char> bytes;
    std::vector<char> used;  // an element, by its place
    static constexpr long long before = 64;

    Tensor(Type t, int batch, int heads, int rows, int columns_, int gap) : type(t), columns(columns_) {
        strides.row = columns + gap, strides.head = strides.row * (rows + 2), strides.batch = strides.head * heads + 8 * gap;
        long long count = 2 * before + strides.batch * batch;
        bytes.assign(count * size_of(type) + 64, char(0xff)), used.assign(count, 0);
    }
    char* data() { return (char*)((uintptr_t(bytes.data()) + 63) / 64 * 64) + before * size_of(type); }
    long long place(int b, int h, int r, int c) const { return b * strides.batch + h * strides.head + r * strides.row + c; }
    void set(int b, int h, int r, int c, float x) {
        write(data() + place(b, h, r, c) * size_of(type), x, type);
        mark(b, h, r, c);
    }
    void clear() { bytes.assign(bytes.size(), char(0xff)); }
    void mark(int b, int h, int r, int c) { used[before + place(b, h, r, c)] = 1; }
    float get(int b, int h, int r, int c) { return read(data() + place(b, h, r, c) * size_of(type), type); }
    bool gaps_are_untouched() {
        const char* first = data() - before * size_of(type);
        for (size_t i = 0; i < used.size(); ++i)
            if (!used[i])
                for (int byte = 0; byte < size_of(type); ++byte)
                    if (first[i * size_of(type) + byte] != char(0xff)) return false;
        return true;
    }
};

// Largest difference of two lists, infinite where only one is NaN or they are not the same infinity.
struct Difference {
    double worst = 0, largest = 0;
    void add(double x, double reference) {
        if (std::isfinite(reference)) largest = std::max(largest, std::abs(reference));
        if (std::isnan(x) && std::isnan(reference)) return;
        double d = x == reference ? 0 : std::abs(x - reference);
        worst = std::isfinite(d) ? std::max(worst, d) : infinity;
    }
};

struct Problem {
    const EmulatedKernel& k;
    const Case& c;
    int diagonal, left, right;
    float scale;

    Problem(const EmulatedKernel& kernel, const Case& in) : k(kernel), c(in) {
        diagonal = c.top_left ? 0 : c.seq_kv - c.seq_q;
        left = c.window_left < 0 ? 1 << 29 : c.window_left, right = c.window_right < 0 ? 1 << 29 : c.window_right;
        scale = c.scale_is_given ? c.scale : 1 / std::sqrt(float(k.head_dim));
    }
    bool visible(int i, int j) const {
        if (k.mask == Mask::causal) return j <= i + diagonal;
        if (k.mask == Mask::window) return j >= i + diagonal - left && j <= i + diagonal + right;
        return true;
    }
};

// One row in float64 (exact = true), or as plain attention does it in the input type: scores and sums in float, probabilities
// rounded before the second product.
struct Row {
    std::vector<double> out;
    double lse;
};
Row attend(const Problem& p, Tensor& q, Tensor& k, Tensor& v, Tensor& bias, const std::vector<float>& slope, const std::vector<float>& sink, int b, int h,
           int i, bool exact) {
    const Case& c = p.c;
    int kv_head = h / (c.heads_q / c.heads_kv);
    auto narrow = [&](double x) { return exact ? x : double(float(x)); };
    std::vector<double> s(c.seq_kv, -infinity);
    double most = -infinity;
    bool any = false;
    for (int j = 0; j < c.seq_kv; ++j) {
        if (!p.visible(i, j) || (p.k.bias && bias.get(0, h, i, j * 2) == -infinity)) continue;
        double dot = 0;
        for (int d = 0; d < p.k.head_dim; ++d) dot = narrow(dot + double(q.get(b, h, i, d)) * k.get(b, kv_head, j, d));
        double x = narrow(dot * p.scale);
        if (p.k.softcap) x = narrow(c.softcap * std::tanh(x / c.softcap));
        if (p.k.bias) x = narrow(x + bias.get(0, h, i, j * 2));
        if (p.k.alibi) x = narrow(x - slope[h] * std::abs(j - i - p.diagonal));
        s[j] = x, any |= x != -infinity;
        if (x > most) most = x;  // NaN never is
    }
    double reference = most == -infinity ? 0 : most, sum = 0;
    for (double& x : s) x = x == -infinity ? 0 : narrow(std::exp(x - reference)), sum = narrow(sum + x);
    Row row{std::vector<double>(p.k.head_dim_v), any ? reference + std::log(sum) : -infinity};
    if (p.k.sink) {
        double both = std::max<double>(row.lse, sink[h]);
        double joined = std::isnan(row.lse) ? nan : both + std::log(std::exp(row.lse - both) + std::exp(sink[h] - both));
        sum = any ? sum * std::exp(joined - row.lse) : 1, row.lse = joined;
    }
    for (int d = 0; d < p.k.head_dim_v; ++d) {
        double o = 0;
        for (int j = 0; j < c.seq_kv; ++j) {
            bool hidden = !p.visible(i, j) || (p.k.bias && bias.get(0, h, i, j * 2) == -infinity);
            if (hidden) continue;
            double w = any ? s[j] / sum : 0;
            o = narrow(o + (exact ? w : double(rounded(float(w), p.k.type))) * v.get(b, kv_head, j, d));
        }
        row.out[d] = exact ? o : double(rounded(float(o), p.k.type));
    }
    return row;
}

// What is wrong, or nothing.
std::string compare(const Problem& p, Tensor& out, const std::vector<float>& lse, const std::vector<Row>& expected, const std::vector<Row>& naive) {
    const Case& c = p.c;
    std::ostringstream wrong;
    if (!out.gaps_are_untouched()) wrong << "wrote outside the output's rows; ";
    if (lse.front() == lse.front() || lse.back() == lse.back()) wrong << "wrote outside lse; ";
    Difference ours, plain, our_lse, plain_lse;
    size_t row = 0;
    for (int b = 0; b < c.batch; ++b)
        for (int h = 0; h < c.heads_q; ++h)
            for (int i = 0; i < c.seq_q; ++i, ++row) {
                const Row& want = expected[row];
                for (int d = 0; d < p.k.head_dim_v; ++d) {
                    double before = ours.worst;
                    ours.add(out.get(b, h, i, d), want.out[d]), plain.add(naive[row].out[d], want.out[d]);
                    if (ours.worst == infinity && before != infinity)
                        wrong << "batch " << b << " head " << h << " row " << i << " column " << d << " is " << out.get(b, h, i, d) << ", not " << want.out[d] << "; ";
                }
                our_lse.add(lse[1 + row], want.lse), plain_lse.add(naive[row].lse, want.lse);
                if (our_lse.worst == infinity)
                    return wrong.str() + "lse of row " + std::to_string(i) + " is " + std::to_string(lse[1 + row]) + ", not " + std::to_string(want.lse);
            }
    double limit = 2 * plain.worst + 1e-6 * ours.largest, lse_limit = 2 * plain_lse.worst + 2e-6 * std::max(1.0, our_lse.largest);
    if (!(ours.worst <= limit)) wrong << "out is off by " << ours.worst << ", limit " << limit << " (plain attention: " << plain.worst << "); ";
    if (!(our_lse.worst <= lse_limit)) wrong << "lse is off by " << our_lse.worst << ", limit " << lse_limit << "; ";
    return wrong.str();
}

}  // namespace

float rounded(float x, Type type) {
    char bytes[4];
    write(bytes, x, type);
    return read(bytes, type);
}

std::string check(const EmulatedKernel& kernel, const Case& c, const std::vector<int>& orders) {
    Problem p(kernel, c);
    Type type = kernel.type;
    int gap = kernel.aligned ? 8 : 3, head_dim = kernel.head_dim, head_dim_v = kernel.head_dim_v;
    Tensor q(type, c.batch, c.heads_q, c.seq_q, head_dim, gap), k(type, c.batch, c.heads_kv, c.seq_kv, head_dim, gap);
    Tensor v(type, c.batch, c.heads_kv, c.seq_kv, head_dim_v, gap), out(type, c.batch, c.heads_q, c.seq_q, head_dim_v, gap);
    Tensor bias(type, 1, c.heads_q, c.seq_q, 2 * c.seq_kv, 5);
    std::mt19937 random(17);
    std::normal_distribution<float> normal;

    for (int b = 0; b < c.batch; ++b) {
        for (int h = 0; h < c.heads_q; ++h)
            for (int i = 0; i < c.seq_q; ++i) {
                for (int d = 0; d < head_dim; ++d) q.set(b, h, i, d, c.magnitude * normal(random));
                for (int d = 0; d < head_dim_v; ++d) out.mark(b, h, i, d);
            }
        for (int h = 0; h < c.heads_kv; ++h)
            for (int j = 0; j < c.seq_kv; ++j) {
                for (int d = 0; d < head_dim; ++d) k.set(b, h, j, d, normal(random));
                for (int d = 0; d < head_dim_v; ++d) v.set(b, h, j, d, normal(random));
            }
    }
    for (int h = 0; h < c.heads_q && kernel.bias; ++h)
        for (int i = 0; i < c.seq_q; ++i)
            for (int j = 0; j < c.seq_kv; ++j) bias.set(0, h, i, 2 * j, (i + j) % 7 == 3 ? -infinity : normal(random));
    if (c.dominant_key >= 0)  // its score is `dominance` above all others, whose queries and keys are equal
        for (int i = 0; i < c.seq_q; ++i)
            for (int d = 0; d < head_dim; ++d) {
                q.set(0, 0, i, d, d == 0);
                for (int j = 0; j < c.seq_kv; ++j) k.set(0, 0, j, d, d == 0 && j == c.dominant_key ? c.dominance / p.scale : 0);
            }
    for (int j : c.odd_keys)  // NaN and infinity in a key, in a value, in both
        for (int d = 0; d < head_dim_v; ++d) {
            if (j % 3 != 0) v.set(0, 0, j, d, j % 2 ? nan : d % 3 == 0 ? infinity : d % 3 == 1 ? -infinity : 1.0f);
            if (j % 3 == 0 && d < head_dim) k.set(0, 0, j, d, nan);
        }
    if (c.lowest_bias)
        for (int h = 0; h < c.heads_q; ++h)
            for (int i = 0; i < c.seq_q; ++i)
                for (int j = 0; j < c.seq_kv; ++j)
                    bias.set(0, h, i, 2 * j, i == 0 ? -infinity : type == Type::fp16 ? -65504.0f : -3.38953139e38f);
    std::vector<float> slope, sink, lse(size_t(c.batch) * c.heads_q * c.seq_q + 2, nan);
    for (int h = 0; h < c.heads_q; ++h) slope.push_back(std::exp2(-float(h + 1))), sink.push_back(0.5f * float(h) - 0.25f);

    ForwardParameters f{};
    f.query = q.data(), f.key = k.data(), f.value = v.data(), f.out = out.data(), f.lse = lse.data() + 1;
    f.bias = bias.data(), f.slope = slope.data(), f.sink = sink.data();
    f.query_strides = q.strides, f.key_strides = k.strides, f.value_strides = v.strides, f.out_strides = out.strides;
    f.bias_strides = bias.strides, f.bias_strides.batch = 0, f.bias_column_stride = 2;
    f.batch = c.batch, f.heads_q = c.heads_q, f.heads_kv = c.heads_kv, f.seq_q = c.seq_q, f.seq_kv = c.seq_kv;
    f.scale = p.scale, f.softcap = c.softcap, f.diagonal = p.diagonal, f.window_left = p.left, f.window_right = p.right;
    int group = kernel.packs_heads ? c.heads_q / c.heads_kv : 1, heads = c.batch * c.heads_q / group;
    f.section_heads = heads, f.tiles = heads * ((c.seq_q * group + kernel.block_q - 1) / kernel.block_q);
    unsigned dealt = 0;
    f.tiles_dealt = &dealt;

    std::vector<Row> expected, naive;
    for (int b = 0; b < c.batch; ++b)
        for (int h = 0; h < c.heads_q; ++h)
            for (int i = 0; i < c.seq_q; ++i) {
                expected.push_back(attend(p, q, k, v, bias, slope, sink, b, h, i, true));
                naive.push_back(attend(p, q, k, v, bias, slope, sink, b, h, i, false));
            }
    std::string wrong;
    for (int order : orders) {
        out.clear(), lse.assign(lse.size(), nan);
        std::string found = kernel.run(f, order);
        if (found.empty()) found = compare(p, out, lse, expected, naive);
        if (dealt) found += "; left " + std::to_string(dealt) + " in the counter of tiles";
        dealt = 0;
        if (!found.empty()) wrong += "order " + std::to_string(order) + ": " + found + "; ";
    }
    return wrong;
}

}  // namespace tilewright::emulated
