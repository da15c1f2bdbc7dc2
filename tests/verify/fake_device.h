// A device in host memory whose "kernel" is an online softmax in float, with faults to order: what the checks must let
// pass, and what they must catch.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include "backends/backend.h"
#include "verify/element.h"

namespace tilewright::test {

enum class Fault {
    none,
    mask_off_by_one,    // sees one key too many to the right of the diagonal
    window_off_by_one,  // sees one key too few to the left
    missing_rescale,    // earlier output is not corrected when the maximum grows
    wrong_kv_head,      // head % heads_kv
    unnormalised,
    past_the_end,       // writes one element after the last row
    gap_written,        // writes the element after each row
    input_written,      // writes into the query
    nan_dropped,        // NaN scores are treated as hidden
    hidden_value_read,  // 0 * value for hidden keys
    low_is_hidden,      // scores below a finite sentinel are treated as hidden
    offset_overflows,   // exponent computed as fma(score, scale, -maximum * scale) in units that overflow
    bias_ignored,
    alibi_signed,       // distance without its absolute value
    sink_ignored,
    softcap_after_bias,
    scale_ignored,
    top_left,           // whatever alignment was asked for
    lse_base_two,
    last_row_skipped,
    empty_row_nan,
    unrepeatable,
    too_coarse,         // the sum is kept in bf16
    lse_ignores_null,   // not normalised where no lse is asked for
    offsets_in_31_bits,
    zero_stride_dense,  // a row stride of 0 is taken for a dense one
    wide_value,         // values are taken to be as wide as keys
    softcap_linear,     // clamped, not bent
    key_of_neighbour,   // packed: a sequence has one key more
    diagonal_of_all,    // packed: positions count from the first row of all
    starts_in_32_bits,  // packed: whatever they have
    lse_by_sequence,    // packed: [sequence][head][query], as it is of a batch
    row_behind_written, // packed: behind the last sequence
};
constexpr int fault_count = int(Fault::row_behind_written) + 1;

struct FakeKernel : Kernel {
    explicit FakeKernel(KernelSpec s, Fault f = Fault::none) : spec(std::move(s)), fault(f) {}
    KernelSpec spec;
    Fault fault;
};

class FakeLaunch {
public:
    FakeLaunch(const FakeKernel& kernel, const kernel::ForwardParameters& parameters, int launch) : k_(kernel), p_(parameters), launch_(launch) {}

    void run() {
        for (int b = 0; b < p_.batch; ++b)
            for (int h = 0; h < p_.heads_q; ++h) {
                int kv_head = has(Fault::wrong_kv_head) ? h % p_.heads_kv : h / (p_.heads_q / p_.heads_kv);
                load_rows(p_.key, p_.key_strides, b, kv_head, k_.spec.problem.head_dim, keys_);
                load_rows(p_.value, p_.value_strides, b, kv_head, k_.spec.problem.head_dim_v, values_);
                for (int i = 0; i < p_.seq_q; ++i)
                    if (!(has(Fault::last_row_skipped) && i == p_.seq_q - 1)) row(b, h, i);
            }
        if (has(Fault::past_the_end)) store(p_.batch - 1, p_.heads_q - 1, p_.seq_q - 1, int(k_.spec.problem.head_dim_v), 0);
        if (has(Fault::input_written)) std::memset(const_cast<void*>(p_.query), 0, 2);
    }

private:
    static constexpr float hidden = -std::numeric_limits<float>::infinity();
    bool has(Fault fault) const { return k_.fault == fault; }

    const char* at(const void* base, const kernel::Strides& s, int b, int h, int64_t r, int64_t c) const {
        int64_t row = has(Fault::zero_stride_dense) && s.row == 0 ? k_.spec.problem.head_dim : s.row;
        int64_t offset = b * s.batch + h * s.head + r * row + c;
        if (has(Fault::offsets_in_31_bits)) offset &= 0x7fffffff;
        return static_cast<const char*>(base) + offset * int64_t(size_of(k_.spec.problem.dtype));
    }
    float load(const void* base, const kernel::Strides& s, int b, int h, int64_t r, int64_t c) const {
        return float(load_element(k_.spec.problem.dtype, at(base, s, b, h, r, c)));
    }
    void load_rows(const void* base, const kernel::Strides& s, int b, int h, int64_t columns, std::vector<float>& to) const {
        to.resize(size_t(p_.seq_kv * columns));
        for (int j = 0; j < p_.seq_kv; ++j) load_elements(k_.spec.problem.dtype, at(base, s, b, h, j, 0), 1, columns, to.data() + j * columns);
    }
    void store(int b, int h, int i, int c, double value) { store_element(k_.spec.problem.dtype, const_cast<char*>(at(p_.out, p_.out_strides, b, h, i, c)), value); }

    float score(int b, int h, const std::vector<float>& query, int i, int j) const {
        const Problem& problem = k_.spec.problem;
        float dot = 0;
        for (int d = 0; d < problem.head_dim; ++d) dot += query[size_t(d)] * keys_[size_t(j * problem.head_dim + d)];
        float s = dot * (has(Fault::scale_ignored) ? 1 / std::sqrt(float(problem.head_dim)) : p_.scale);
        float bias = problem.bias && !has(Fault::bias_ignored) ? load(p_.bias, p_.bias_strides, b, h, i, j * p_.bias_column_stride) : 0;
        if (bias == hidden) return hidden;
        if (has(Fault::softcap_after_bias)) s += bias;
        if (problem.softcap) s = has(Fault::softcap_linear) ? std::clamp(s, -p_.softcap, p_.softcap) : p_.softcap * std::tanh(s / p_.softcap);
        if (!has(Fault::softcap_after_bias)) s += bias;
        int distance = i + p_.diagonal - j;
        if (problem.alibi) s -= p_.slope[h] * float(has(Fault::alibi_signed) ? distance : std::abs(distance));
        if (has(Fault::nan_dropped) && std::isnan(s)) return hidden;
        return has(Fault::low_is_hidden) && s < -1e30f ? hidden : s;
    }

    void row(int b, int h, int i) {
        const Problem& problem = k_.spec.problem;
        std::vector<float> query(size_t(problem.head_dim)), out(size_t(problem.head_dim_v), 0);
        load_elements(problem.dtype, at(p_.query, p_.query_strides, b, h, i, 0), 1, problem.head_dim, query.data());
        int64_t aligned = i + (has(Fault::top_left) ? 0 : p_.diagonal);
        int64_t begin = std::max<int64_t>(0, aligned - p_.window_left + has(Fault::window_off_by_one));
        int64_t end = std::min<int64_t>(p_.seq_kv, aligned + p_.window_right + 1 + has(Fault::mask_off_by_one));
        float maximum = hidden, sum = 0;
        for (int j = 0; j < p_.seq_kv; ++j) {
            float s = j >= begin && j < end ? score(b, h, query, i, j) : hidden;
            if (s == hidden && !has(Fault::hidden_value_read)) continue;
            float largest = s > maximum ? s : maximum, reference = largest == hidden ? 0 : largest;
            float correction = has(Fault::missing_rescale) ? 1 : std::exp(maximum - reference), probability = std::exp(s - reference);
            if (has(Fault::offset_overflows)) probability = std::exp2(std::fma(s, 1.44269504f, -(reference * 1.44269504f)));
            sum = sum * correction + probability;
            if (has(Fault::too_coarse)) sum = float(round_to(DType::bf16, sum));
            for (int d = 0; d < problem.head_dim_v; ++d) out[size_t(d)] = out[size_t(d)] * correction + probability * values_[size_t(j * problem.head_dim_v + d)];
            maximum = largest;
        }
        if (problem.sink && !has(Fault::sink_ignored)) {
            float largest = std::max(maximum, p_.sink[h]), correction = maximum == hidden ? 0 : std::exp(maximum - largest);
            sum = sum * correction + std::exp(p_.sink[h] - largest);
            for (float& x : out) x *= correction;
            maximum = largest;
        }
        bool empty = sum == 0 && !has(Fault::empty_row_nan), raw = has(Fault::unnormalised) || (has(Fault::lse_ignores_null) && !p_.lse);
        int64_t columns = has(Fault::wide_value) ? std::min(problem.head_dim, problem.head_dim_v) : problem.head_dim_v;
        for (int d = 0; d < columns; ++d) {
            float x = empty ? 0 : raw ? out[size_t(d)] : out[size_t(d)] / sum;
            if (has(Fault::unrepeatable) && launch_ % 2 == 0) x *= 1 + float(epsilon(problem.dtype));
            store(b, h, i, d, x);
        }
        if (has(Fault::gap_written)) store(b, h, i, int(problem.head_dim_v), 0);
        float lse = maximum + std::log(sum);
        if (p_.lse) p_.lse[(int64_t(b) * p_.heads_q + h) * p_.seq_q + i] = has(Fault::lse_base_two) ? lse * 1.44269504f : lse;
    }

    const FakeKernel& k_;
    const kernel::ForwardParameters& p_;
    int launch_;
    std::vector<float> keys_, values_;  // of the head at hand
};

class FakeDevice : public Device {
public:
    const DeviceInfo& info() const override { return info_; }
    Result<void*> allocate(int64_t bytes) override { return std::aligned_alloc(256, size_t(std::max<int64_t>(bytes, 1) + 255) / 256 * 256); }
    Status free(void* address) override { return std::free(address), Status(); }
    Status copy_to_device(void* to, const void* from, int64_t bytes) override { return std::memcpy(to, from, size_t(bytes)), Status(); }
    Status copy_to_host(void* to, const void* from, int64_t bytes) override { return std::memcpy(to, from, size_t(bytes)), Status(); }
    Status fill(void* to, unsigned char value, int64_t bytes) override { return std::memset(to, value, size_t(bytes)), Status(); }
    Result<std::unique_ptr<Kernel>> load(const CodeObject&, const KernelSpec& spec, const KernelSource&) override {
        return std::unique_ptr<Kernel>(std::make_unique<FakeKernel>(spec));
    }
    Status launch(Kernel& kernel, const kernel::ForwardParameters& parameters, void*) override {
        return FakeLaunch(static_cast<FakeKernel&>(kernel), parameters, ++launches_).run(), Status();
    }
    // Each sequence as a forward of its own.
    Status launch(Kernel& kernel, const kernel::PackedParameters& p, void*) override {
        const FakeKernel& fake = static_cast<FakeKernel&>(kernel);
        const auto element = int64_t(size_of(fake.spec.problem.dtype));
        auto start = [&](const void* starts, int i) {
            return p.wide && fake.fault != Fault::starts_in_32_bits ? static_cast<const int64_t*>(starts)[i] : int64_t{static_cast<const int*>(starts)[i]};
        };
        ++launches_;
        int64_t rows = 0;
        for (int s = 0; s < p.sequences; ++s) {
            kernel::ForwardParameters f = p.forward;
            const int64_t query = start(p.query_starts, s), key = start(p.key_starts, s);
            f.seq_q = int(start(p.query_starts, s + 1) - query), f.seq_kv = int(start(p.key_starts, s + 1) - key) + (fake.fault == Fault::key_of_neighbour);
            f.seq_q = std::max(f.seq_q, 0), f.seq_kv = std::max(f.seq_kv, 0);  // starts that were misread
            f.diagonal = p.top_left ? 0 : f.seq_kv - f.seq_q;
            if (fake.fault == Fault::diagonal_of_all) f.diagonal += int(query - key);
            auto behind = [&](const void* data, const kernel::Strides& strides, int64_t first) { return static_cast<const char*>(data) + first * strides.row * element; };
            f.query = behind(f.query, f.query_strides, query), f.key = behind(f.key, f.key_strides, key), f.value = behind(f.value, f.value_strides, key);
            f.out = const_cast<char*>(behind(f.out, f.out_strides, query));
            std::vector<float> lse(size_t(f.heads_q) * size_t(f.seq_q));
            if (f.lse) f.lse = lse.data();
            FakeLaunch(fake, f, launches_).run();
            for (int64_t h = 0; p.forward.lse && h < f.heads_q; ++h) {
                const bool as_batch = fake.fault == Fault::lse_by_sequence;
                std::copy_n(lse.begin() + h * f.seq_q, f.seq_q, p.forward.lse + (as_batch ? rows * f.heads_q + h * f.seq_q : h * p.forward.seq_q + query));
            }
            rows += f.seq_q;
        }
        if (fake.fault == Fault::row_behind_written && p.sequences > 0) {
            const kernel::ForwardParameters& f = p.forward;
            std::memset(static_cast<char*>(f.out) + start(p.query_starts, p.sequences) * f.out_strides.row * element, 0, size_t(element));
        }
        return {};
    }
    Status synchronize() override { return {}; }
    Result<std::vector<double>> time_us(int, const std::function<Status()>&, const std::function<Status()>&) override {
        return Status(StatusCode::unsupported, "the fake device has no clock");
    }
    Result<int> resident_blocks(Kernel&) override { return 1; }

private:
    int launches_ = 0;
    DeviceInfo info_{"fake:0", "fake", {}, ""};
};

}  // namespace tilewright::test
