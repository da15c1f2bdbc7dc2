// Attention shapes of public models, for people who think in models rather than in problem texts.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tilewright/problem.h"

namespace tilewright {

struct ModelShape {
    const char* name;
    int64_t heads_q, heads_kv;
    int64_t head_dim, head_dim_v;
    int64_t window;        // keys that a query sees, itself included, in the layers that have a sliding window; 0: none do
    bool causal;           // false: an encoder, which has no decode phase
    bool softcap, sink;
    const char* source;    // the published file that these numbers are from
};
std::span<const ModelShape> model_shapes();

enum class Phase { prefill, decode };
// "prefill" or "decode"; anything else is invalid_argument.
Result<Phase> parse_phase(std::string_view text);

// The forward problem of one attention layer in bf16: `seq` new queries over `seq` keys (prefill), or one query over `seq`
// keys (decode). Of layers with and without a window the windowed one is meant. invalid_argument: an unknown model (the
// message lists the known ones), a decode phase of an encoder, or sizes that are no legal problem.
Result<Problem> model_problem(std::string_view model, Phase phase, int64_t seq, int64_t batch);

}  // namespace tilewright
