// The C interface over the C++ one: checks what C cannot, translates, keeps the last error of each thread.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/c_api.h"
#include "tilewright/attention.h"

using namespace tilewright;
using namespace tilewright::c_api;

struct tilewright_context {
    Attention attention;
};

namespace {

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

Result<PackedSequences> sequences_of(const tilewright_packed_sequences* s) {
    TILEWRIGHT_RETURN_IF_ERROR(check_struct("sequences", s));
    static_assert(static_cast<int>(IndexType::int32) == TILEWRIGHT_INT32 && static_cast<int>(IndexType::int64) == TILEWRIGHT_INT64);
    return PackedSequences{s->query_starts, s->key_starts, static_cast<IndexType>(s->index_type), s->query_rows, s->key_rows};
}

Status forward_packed(tilewright_context* context, const tilewright_problem* given, const tilewright_forward_tensors* t, const tilewright_packed_sequences* s, void* stream) {
    if (!context) return is_null("context");
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    TILEWRIGHT_ASSIGN_OR_RETURN(ForwardTensors tensors, tensors_of(t));
    TILEWRIGHT_ASSIGN_OR_RETURN(PackedSequences sequences, sequences_of(s));
    return context->attention.forward_packed(problem, tensors, sequences, stream);
}

Result<BackwardTensors> tensors_of(const tilewright_backward_tensors* caller) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const tilewright_backward_tensors t, completed("tensors", caller, TILEWRIGHT_INIT_BACKWARD_TENSORS, first_backward_size));
    BackwardTensors tensors;
    TILEWRIGHT_ASSIGN_OR_RETURN(tensors.forward, tensors_of(t.forward));
    tensors.out_gradient = input_of(t.out_gradient), tensors.lse_gradient = t.lse_gradient;
    tensors.query_gradient = output_of(t.query_gradient), tensors.key_gradient = output_of(t.key_gradient), tensors.value_gradient = output_of(t.value_gradient);
    tensors.sink_gradient = t.sink_gradient, tensors.bias_gradient = output_of(t.bias_gradient);
    tensors.workspace = t.workspace, tensors.workspace_bytes = t.workspace_bytes, tensors.deterministic = t.deterministic != 0;
    return tensors;
}

Status backward(tilewright_context* context, const tilewright_problem* given, const tilewright_backward_tensors* t, void* stream) {
    if (!context) return is_null("context");
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    TILEWRIGHT_ASSIGN_OR_RETURN(BackwardTensors tensors, tensors_of(t));
    return context->attention.backward(problem, tensors, stream);
}

Status backward_packed(tilewright_context* context, const tilewright_problem* given, const tilewright_backward_tensors* t, const tilewright_packed_sequences* s, void* stream) {
    if (!context) return is_null("context");
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    TILEWRIGHT_ASSIGN_OR_RETURN(BackwardTensors tensors, tensors_of(t));
    TILEWRIGHT_ASSIGN_OR_RETURN(PackedSequences sequences, sequences_of(s));
    return context->attention.backward_packed(problem, tensors, sequences, stream);
}

Status decode(tilewright_context* context, const tilewright_problem* given, const tilewright_decode_tensors* t, void* stream) {
    if (!context) return is_null("context");
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    TILEWRIGHT_RETURN_IF_ERROR(check_struct("tensors", t));
    DecodeTensors tensors;
    tensors.query = input_of(t->query), tensors.key = input_of(t->key), tensors.value = input_of(t->value), tensors.out = output_of(t->out);
    tensors.lse = t->lse, tensors.lengths = t->lengths, tensors.block_table = t->block_table;
    tensors.table_stride = t->table_stride, tensors.page_size = t->page_size, tensors.pages = t->pages;
    tensors.bias = input_of(t->bias), tensors.alibi_slope = t->alibi_slope, tensors.sink = t->sink, tensors.softcap = t->softcap;
    if (t->scale) tensors.scale = *t->scale;
    tensors.workspace = t->workspace, tensors.workspace_bytes = t->workspace_bytes, tensors.splits = t->splits;
    return context->attention.decode(problem, tensors, stream);
}

Status append(tilewright_context* context, const tilewright_problem* given, const tilewright_append_tensors* t, void* stream) {
    if (!context) return is_null("context");
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    TILEWRIGHT_RETURN_IF_ERROR(check_struct("tensors", t));
    AppendTensors tensors;
    tensors.key = input_of(t->key), tensors.value = input_of(t->value), tensors.key_cache = output_of(t->key_cache), tensors.value_cache = output_of(t->value_cache);
    tensors.rows = t->rows, tensors.lengths = t->lengths, tensors.counts = t->counts, tensors.status = t->status;
    tensors.block_table = t->block_table, tensors.table_stride = t->table_stride, tensors.page_size = t->page_size, tensors.pages = t->pages;
    return context->attention.append(problem, tensors, stream);
}

// Of the operation that the problem names, or of a certain one.
Status workspace_bytes(tilewright_context* context, const tilewright_problem* given, Operation operation, bool deterministic, int splits, int64_t* bytes) {
    if (!context || !bytes) return is_null(context ? "bytes" : "context");
    *bytes = 0;
    Result<int64_t> needed = 0;
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    if (operation == Operation::backward) needed = context->attention.backward_workspace_bytes(problem, deterministic);
    if (operation == Operation::decode) needed = context->attention.decode_workspace_bytes(problem, splits);
    if (needed.ok()) *bytes = *needed;
    return needed.status();
}

Status packed_workspace_bytes(tilewright_context* context, const tilewright_problem* given, int64_t query_rows, int64_t* bytes) {
    if (!context || !bytes) return is_null(context ? "bytes" : "context");
    *bytes = 0;
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    TILEWRIGHT_ASSIGN_OR_RETURN(*bytes, context->attention.backward_packed_workspace_bytes(problem, query_rows));
    return {};
}

Status lookup(tilewright_context* context, const tilewright_problem* given, tilewright_config* config) {
    if (!context) return is_null("context");
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, problem_of(given));
    return fill(context->attention.lookup(problem), config);
}

}  // namespace

const char* tilewright_version(void) { return TILEWRIGHT_VERSION; }

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
    if (Status status = check_struct("problem", problem, first_problem_size); !status.ok()) return report(status);
    Result<Problem> parsed = parse_problem(text);
    if (!parsed.ok()) return report(parsed.status());
    const Problem& p = *parsed;
    size_t size = std::min<size_t>(problem->struct_size, sizeof *problem);
    const size_t needed = p.packed ? sizeof *problem : p.operation != Operation::forward ? offsetof(tilewright_problem, shortest_q) : first_problem_size;
    if (size < needed)
        return report({StatusCode::unsupported, "problem.struct_size is " + std::to_string(problem->struct_size) + ", which has no place for all of " + to_text(p)});
    tilewright_problem complete = {size,          p.batch,       p.heads_q, p.heads_kv, p.seq_q,  p.seq_kv, p.head_dim, p.head_dim_v, static_cast<int32_t>(p.dtype), static_cast<int32_t>(p.alignment),
                                   p.window_left, p.window_right, p.softcap, p.bias,     p.alibi, p.sink,   static_cast<int32_t>(p.operation), p.deterministic, p.page_size, p.shortest_kv, p.length_seed, p.shortest_q, p.packed};
    std::memcpy(problem, &complete, size);
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

tilewright_status tilewright_backward(tilewright_context* context, const tilewright_problem* problem, const tilewright_backward_tensors* tensors, void* stream) {
    return report(backward(context, problem, tensors, stream));
}

tilewright_status tilewright_backward_packed(tilewright_context* context, const tilewright_problem* problem, const tilewright_backward_tensors* tensors,
                                             const tilewright_packed_sequences* sequences, void* stream) {
    return report(backward_packed(context, problem, tensors, sequences, stream));
}

tilewright_status tilewright_decode(tilewright_context* context, const tilewright_problem* problem, const tilewright_decode_tensors* tensors, void* stream) {
    return report(decode(context, problem, tensors, stream));
}

tilewright_status tilewright_append(tilewright_context* context, const tilewright_problem* problem, const tilewright_append_tensors* tensors, void* stream) {
    return report(append(context, problem, tensors, stream));
}

tilewright_status tilewright_workspace_bytes(tilewright_context* context, const tilewright_problem* problem, int64_t* bytes) {
    Result<Problem> p = problem_of(problem);
    return report(p.ok() ? workspace_bytes(context, problem, p->operation, false, 0, bytes) : p.status());
}

tilewright_status tilewright_backward_workspace_bytes(tilewright_context* context, const tilewright_problem* problem, int32_t deterministic, int64_t* bytes) {
    return report(workspace_bytes(context, problem, Operation::backward, deterministic != 0, 0, bytes));
}

tilewright_status tilewright_backward_packed_workspace_bytes(tilewright_context* context, const tilewright_problem* problem, int64_t query_rows, int64_t* bytes) {
    return report(packed_workspace_bytes(context, problem, query_rows, bytes));
}

tilewright_status tilewright_decode_workspace_bytes(tilewright_context* context, const tilewright_problem* problem, int32_t splits, int64_t* bytes) {
    return report(workspace_bytes(context, problem, Operation::decode, false, splits, bytes));
}

tilewright_status tilewright_lookup(tilewright_context* context, const tilewright_problem* problem, tilewright_config* config) {
    return report(lookup(context, problem, config));
}

tilewright_status tilewright_synchronize(tilewright_context* context) {
    if (!context) return report(is_null("context"));
    return report(context->attention.synchronize());
}
