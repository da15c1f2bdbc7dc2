// From (kernel, problem, config, architecture) to the text that a compiler gets.
#pragma once
#include <string>
#include <vector>

#include "backends/arch.h"
#include "tilewright/config.h"
#include "tilewright/problem.h"

namespace tilewright {

// One row of kernels.inc each.
enum class KernelKind {
#define TILEWRIGHT_KERNEL(name, header, summary) name,
#include "kernels/kernels.inc"
#undef TILEWRIGHT_KERNEL
};
const char* name(KernelKind kind);  // also the entry point
// One of those that together make a backward: they take BackwardParameters, or what those begin with.
constexpr bool is_backward(KernelKind kind) { return kind >= KernelKind::attention_backward_prologue && kind <= KernelKind::attention_backward_sink; }
// What a pass of the backward owns tiles of, and which gradients it gives: of what is scored (query or key), of what is carried (value), of the bias.
constexpr bool is_over_keys(KernelKind kind) {
    return kind == KernelKind::attention_backward_keys || kind == KernelKind::attention_backward_keys_alone || kind == KernelKind::attention_backward_values_alone;
}
constexpr bool gives_bias(KernelKind kind) { return kind == KernelKind::attention_backward_bias; }
constexpr bool gives_scored(KernelKind kind) { return kind != KernelKind::attention_backward_values_alone && !gives_bias(kind); }
constexpr bool gives_carried(KernelKind kind) { return kind == KernelKind::attention_backward_keys || kind == KernelKind::attention_backward_values_alone; }

// All that a compiled kernel is specialised for.
struct KernelSpec {
    KernelKind kind = KernelKind::attention_forward;
    Problem problem;        // sizes and strides stay run-time arguments; dims, dtype, mask, variants and packing are compiled in
    Config config;
    bool aligned = true;    // base addresses and row, head and batch strides are multiples of 16 bytes, head dims of 8 elements
    bool rescaled = false;  // the scale is not positive
    bool paged = false;     // attention_decode and append: keys and values lie in pages
};

// Of a backward's kernel: it takes all of BackwardParameters.
inline bool takes_whole_parameters(const KernelSpec& spec) { return is_backward(spec.kind) && (spec.problem.bias || spec.problem.packed); }

struct KernelSource {
    std::string text;   // self-contained: all of kernels/ that it needs is in it
    std::string entry;  // extern "C" symbol
    int threads = 1;    // per block
    int64_t shared_bytes = 0;  // dynamic shared memory of a block (on the CPU: scratch of a thread)
};

// unsupported, with the reason, if the architecture cannot run this config: the tuner's constraint.
// Pure: no device, no file, thread-safe.
Result<KernelSource> generate(const KernelSpec& spec, const Arch& arch);

}  // namespace tilewright
