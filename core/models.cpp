// The table of public model shapes.
#include "core/models.h"

namespace tilewright {
namespace {

// Sources are config.json of the named repository on huggingface.co: num_attention_heads, num_key_value_heads, head_dim (or
// hidden_size / num_attention_heads), sliding_window.
constexpr ModelShape table[] = {
    // name            hq   hkv  d    dv   window causal softcap sink  source
    {"llama-3.1-8b",   32,  8,   128, 128, 0,    true,  false, false, "meta-llama/Llama-3.1-8B config.json"},
    {"llama-3.1-70b",  64,  8,   128, 128, 0,    true,  false, false, "meta-llama/Llama-3.1-70B config.json"},
    {"qwen2.5-7b",     28,  4,   128, 128, 0,    true,  false, false, "Qwen/Qwen2.5-7B config.json (use_sliding_window is false)"},
    {"mistral-7b",     32,  8,   128, 128, 4096, true,  false, false, "mistralai/Mistral-7B-v0.1 config.json"},
    {"gemma-2-9b",     16,  8,   256, 256, 4096, true,  true,  false, "google/gemma-2-9b config.json (attn_logit_softcapping 50)"},
    {"gpt-oss-20b",    64,  8,   64,  64,  128,  true,  false, true,  "openai/gpt-oss-20b config.json"},
    {"deepseek-v3",    128, 128, 192, 128, 0,    true,  false, false, "deepseek-ai/DeepSeek-V3 config.json (qk_nope_head_dim 128 + qk_rope_head_dim 64, v_head_dim 128)"},
    {"bert-base",      12,  12,  64,  64,  0,    false, false, false, "google-bert/bert-base-uncased config.json"},
    {"whisper-large",  20,  20,  64,  64,  0,    false, false, false, "openai/whisper-large-v3 config.json (encoder_attention_heads, d_model)"},
    {"vit-l",          16,  16,  64,  64,  0,    false, false, false, "google/vit-large-patch16-224 config.json"},
};

Result<ModelShape> find_model(std::string_view name) {
    std::string names;
    for (const ModelShape& shape : table) {
        if (name == shape.name) return shape;
        names += (names.empty() ? "" : ", ") + std::string(shape.name);
    }
    return invalid_argument("unknown model '" + std::string(name) + "': known are " + names);
}

}  // namespace

std::span<const ModelShape> model_shapes() { return table; }

Result<Phase> parse_phase(std::string_view text) {
    if (text == "prefill") return Phase::prefill;
    if (text == "decode") return Phase::decode;
    return invalid_argument("unknown phase '" + std::string(text) + "': expected prefill or decode");
}

Result<Problem> model_problem(std::string_view model, Phase phase, int64_t seq, int64_t batch) {
    TILEWRIGHT_ASSIGN_OR_RETURN(ModelShape shape, find_model(model));
    if (phase == Phase::decode && !shape.causal)
        return invalid_argument(std::string(shape.name) + " encodes whole sequences and has no decode phase: use --phase prefill");
    Problem problem;
    problem.operation = phase == Phase::decode ? Operation::decode : Operation::forward;
    problem.batch = batch;
    problem.heads_q = shape.heads_q, problem.heads_kv = shape.heads_kv;
    problem.seq_q = phase == Phase::decode ? 1 : seq, problem.seq_kv = seq;
    problem.head_dim = shape.head_dim, problem.head_dim_v = shape.head_dim_v;
    problem.softcap = shape.softcap, problem.sink = shape.sink;
    // A mask that hides nothing is left out: equal computations have equal problem texts.
    bool windowed = shape.window > 0 && seq > shape.window;
    if (windowed) problem.window_left = shape.window - 1;
    if (windowed || (shape.causal && phase == Phase::prefill)) problem.window_right = 0;
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    return problem;
}

}  // namespace tilewright
