// The C interface over the C++ one: checks what C cannot, translates, keeps the last error of each thread.
#include <cstring>

#include "tilewright/attention.h"
#include "tilewright/tilewright.h"

using namespace tilewright;

struct tilewright_context {
    Attention attention;
};

namespace {

thread_local std::string last_error;

tilewright_status report(const Status& status) {
    last_error = status.message();
    static_assert(static_cast<int>(StatusCode::internal) == TILEWRIGHT_INTERNAL && static_cast<int>(StatusCode::compile) == TILEWRIGHT_COMPILE);
    return static_cast<tilewright_status>(status.code());
}

Status is_null(const char* what) { return invalid_argument(std::string(what) + " is null"); }

// Sizes that this version knows. Smaller: fields that an older caller did not have are missing and cannot be guessed.
template <class Struct>
Status check_struct(const char* what, const Struct* given) {
    if (!given) return is_null(what);
    if (given->struct_size < sizeof(Struct))
        return invalid_argument(std::string(what) + ".struct_size is " + std::to_string(given->struct_size) + "; this library needs at least " +
                                std::to_string(sizeof(Struct)));
    return {};
}

Result<Problem> problem_of(const tilewright_problem* given) {
    TILEWRIGHT_RETURN_IF_ERROR(check_struct("problem", given));
    Problem p;
    if (given->dtype < TILEWRIGHT_FP32 || given->dtype > TILEWRIGHT_BF16)
        return invalid_argument("dtype is " + std::to_string(given->dtype) + "; it must be from 1 to 3");
    if (given->alignment < TILEWRIGHT_BOTTOM_RIGHT || given->alignment > TILEWRIGHT_TOP_LEFT)
        return invalid_argument("alignment is " + std::to_string(given->alignment) + "; it must be 1 or 2");
    p.batch = given->batch, p.heads_q = given->heads_q, p.heads_kv = given->heads_kv, p.seq_q = given->seq_q, p.seq_kv = given->seq_kv;
    p.head_dim = given->head_dim, p.head_dim_v = given->head_dim_v;
    p.dtype = static_cast<DType>(given->dtype), p.alignment = static_cast<Alignment>(given->alignment);
    p.window_left = given->window_left, p.window_right = given->window_right;
    p.softcap = given->softcap != 0, p.bias = given->bias != 0, p.alibi = given->alibi != 0, p.sink = given->sink != 0;
    TILEWRIGHT_RETURN_IF_ERROR(validate(p));
    return p;
}

InputTensor input_of(const tilewright_tensor& t) { return {t.data, t.batch_stride, t.head_stride, t.row_stride, t.column_stride}; }
OutputTensor output_of(const tilewright_tensor& t) { return {const_cast<void*>(t.data), t.batch_stride, t.head_stride, t.row_stride, t.column_stride}; }

Result<ForwardTensors> tensors_of(const tilewright_forward_tensors* t) {
    TILEWRIGHT_RETURN_IF_ERROR(check_struct("tensors", t));
    ForwardTensors tensors;
    tensors.query = input_of(t->query), tensors.key = input_of(t->key), tensors.value = input_of(t->value), tensors.out = output_of(t->out);
    tensors.lse = t->lse, tensors.bias = input_of(t->bias), tensors.alibi_slope = t->alibi_slope, tensors.sink = t->sink, tensors.softcap = t->softcap;
    if (t->scale) tensors.scale = *t->scale;
    return tensors;
}

Status forward(tilewright_context* context, const tilewright_problem* given, const tilewright_forward_tensors* t, void* stream) {
    if (!context) return is_null("context");
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    TILEWRIGHT_ASSIGN_OR_RETURN(ForwardTensors tensors, tensors_of(t));
    return context->attention.forward(problem, tensors, stream);
}

Status forward_packed(tilewright_context* context, const tilewright_problem* given, const tilewright_forward_tensors* t, const tilewright_packed_sequences* s, void* stream) {
    if (!context) return is_null("context");
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    TILEWRIGHT_ASSIGN_OR_RETURN(ForwardTensors tensors, tensors_of(t));
    TILEWRIGHT_RETURN_IF_ERROR(check_struct("sequences", s));
    static_assert(static_cast<int>(IndexType::int32) == TILEWRIGHT_INT32 && static_cast<int>(IndexType::int64) == TILEWRIGHT_INT64);
    return context->attention.forward_packed(problem, tensors, {s->query_starts, s->key_starts, static_cast<IndexType>(s->index_type), s->query_rows, s->key_rows}, stream);
}

Status lookup(tilewright_context* context, const tilewright_problem* given, tilewright_config* config) {
    if (!context) return is_null("context");
    TILEWRIGHT_RETURN_IF_ERROR(check_struct("config", config));
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    LookupResult found = context->attention.lookup(problem);
    config->provenance = static_cast<int32_t>(found.provenance);
    config->block_q = found.config.block_q, config->block_kv = found.config.block_kv, config->stages = found.config.stages,
    config->workers = found.config.workers;
    config->median_us = found.median_us, config->distance = found.distance;
    std::string json = to_json(found.config);
    if (json.size() >= sizeof config->json) return {StatusCode::internal, "the config's JSON has " + std::to_string(json.size()) + " bytes"};
    std::memcpy(config->json, json.c_str(), json.size() + 1);
    return {};
}

}  // namespace

const char* tilewright_version(void) { return TILEWRIGHT_VERSION; }
const char* tilewright_last_error(void) { return last_error.c_str(); }

tilewright_status tilewright_open(const tilewright_options* given, tilewright_context** context) {
    if (!context) return report(is_null("context"));
    *context = nullptr;
    AttentionOptions options;
    if (given) {
        if (Status status = check_struct("options", given); !status.ok()) return report(status);
        if (given->device) options.device = given->device;
        if (given->database) options.database.user_path = given->database;
        options.threads = given->threads;
    }
    Result<Attention> attention = Attention::open(options);
    if (!attention.ok()) return report(attention.status());
    *context = new tilewright_context{*std::move(attention)};
    return TILEWRIGHT_OK;
}

void tilewright_close(tilewright_context* context) { delete context; }

tilewright_status tilewright_parse_problem(const char* text, tilewright_problem* problem) {
    if (!text) return report(is_null("text"));
    if (Status status = check_struct("problem", problem); !status.ok()) return report(status);
    Result<Problem> parsed = parse_problem(text);
    if (!parsed.ok()) return report(parsed.status());
    const Problem& p = *parsed;
    if (p.operation != Operation::forward) return report({StatusCode::unsupported, "the C interface computes forward problems, not " + to_text(p)});
    *problem = {sizeof(tilewright_problem),
                p.batch,
                p.heads_q,
                p.heads_kv,
                p.seq_q,
                p.seq_kv,
                p.head_dim,
                p.head_dim_v,
                static_cast<int32_t>(p.dtype),
                static_cast<int32_t>(p.alignment),
                p.window_left,
                p.window_right,
                p.softcap,
                p.bias,
                p.alibi,
                p.sink};
    return TILEWRIGHT_OK;
}

tilewright_status tilewright_prepare(tilewright_context* context, const tilewright_problem* problem) {
    if (!context) return report(is_null("context"));
    Result<Problem> p = problem_of(problem);
    return p.ok() ? report(context->attention.prepare(*p)) : report(p.status());
}

tilewright_status tilewright_forward(tilewright_context* context, const tilewright_problem* problem, const tilewright_forward_tensors* tensors, void* stream) {
    return report(forward(context, problem, tensors, stream));
}

tilewright_status tilewright_forward_packed(tilewright_context* context, const tilewright_problem* problem, const tilewright_forward_tensors* tensors,
                                            const tilewright_packed_sequences* sequences, void* stream) {
    return report(forward_packed(context, problem, tensors, sequences, stream));
}

tilewright_status tilewright_workspace_bytes(tilewright_context* context, const tilewright_problem* problem, int64_t* bytes) {
    if (!context || !bytes) return report(is_null(context ? "bytes" : "context"));
    *bytes = 0;
    return report(problem_of(problem).status());
}

tilewright_status tilewright_lookup(tilewright_context* context, const tilewright_problem* problem, tilewright_config* config) {
    return report(lookup(context, problem, config));
}

tilewright_status tilewright_synchronize(tilewright_context* context) {
    if (!context) return report(is_null("context"));
    return report(context->attention.synchronize());
}
