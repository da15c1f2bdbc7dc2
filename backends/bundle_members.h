// The members of the kernels' parameters, as bundles name them.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "backends/kernel_source.h"
#include "kernels/parameters.h"

namespace tilewright::bundle_members {

using kernel::DecodeParameters;
using kernel::ForwardParameters;
using kernel::PlainBackwardParameters;

struct Member {
    const char* name;
    size_t offset, size;
    const char* kind;
};
#define TILEWRIGHT_MEMBER_OF(Struct, member, kind) \
    Member { #member, offsetof(Struct, member), sizeof(Struct::member), kind }
#define TILEWRIGHT_MEMBER(member, kind) TILEWRIGHT_MEMBER_OF(ForwardParameters, member, kind)
#define TILEWRIGHT_STRIDES_OF(Struct, member)                                                                                                                 \
    Member{#member ".batch", offsetof(Struct, member) + offsetof(kernel::Strides, batch), 8, "int64"},                                                        \
        Member{#member ".head", offsetof(Struct, member) + offsetof(kernel::Strides, head), 8, "int64"}, Member {                                             \
        #member ".row", offsetof(Struct, member) + offsetof(kernel::Strides, row), 8, "int64"                                                                 \
    }
#define TILEWRIGHT_STRIDES(member) TILEWRIGHT_STRIDES_OF(ForwardParameters, member)
inline constexpr Member forward[] = {
    TILEWRIGHT_MEMBER(query, "pointer"),       TILEWRIGHT_MEMBER(key, "pointer"),
    TILEWRIGHT_MEMBER(value, "pointer"),       TILEWRIGHT_MEMBER(out, "pointer"),
    TILEWRIGHT_MEMBER(lse, "pointer"),         TILEWRIGHT_MEMBER(bias, "pointer"),
    TILEWRIGHT_MEMBER(slope, "pointer"),       TILEWRIGHT_MEMBER(sink, "pointer"),
    TILEWRIGHT_STRIDES(query_strides),         TILEWRIGHT_STRIDES(key_strides),
    TILEWRIGHT_STRIDES(value_strides),         TILEWRIGHT_STRIDES(out_strides),
    TILEWRIGHT_STRIDES(bias_strides),          TILEWRIGHT_MEMBER(bias_column_stride, "int64"),
    TILEWRIGHT_MEMBER(batch, "int32"),         TILEWRIGHT_MEMBER(heads_q, "int32"),
    TILEWRIGHT_MEMBER(heads_kv, "int32"),      TILEWRIGHT_MEMBER(seq_q, "int32"),
    TILEWRIGHT_MEMBER(seq_kv, "int32"),        TILEWRIGHT_MEMBER(scale, "float32"),
    TILEWRIGHT_MEMBER(softcap, "float32"),     TILEWRIGHT_MEMBER(diagonal, "int32"),
    TILEWRIGHT_MEMBER(window_left, "int32"),   TILEWRIGHT_MEMBER(window_right, "int32"),
    TILEWRIGHT_MEMBER(section_heads, "int32"), TILEWRIGHT_MEMBER(tiles, "int32"),
    TILEWRIGHT_MEMBER(scores, "pointer"),      TILEWRIGHT_MEMBER(phase, "int32"),
    TILEWRIGHT_MEMBER(tiles_dealt, "pointer"),
};
#define TILEWRIGHT_DECODE(member, kind) TILEWRIGHT_MEMBER_OF(DecodeParameters, member, kind)
inline constexpr Member decode[] = {  // behind those of its ForwardParameters
    TILEWRIGHT_DECODE(lengths, "pointer"),  TILEWRIGHT_DECODE(block_table, "pointer"), TILEWRIGHT_DECODE(table_stride, "int64"),
    TILEWRIGHT_DECODE(page_shift, "int32"), TILEWRIGHT_DECODE(pages, "int32"),         TILEWRIGHT_DECODE(top_left, "int32"),
    TILEWRIGHT_DECODE(units, "int32"),      TILEWRIGHT_DECODE(partial_out, "pointer"), TILEWRIGHT_DECODE(partial_state, "pointer"),
    TILEWRIGHT_DECODE(arrived, "pointer"),
};
#define TILEWRIGHT_BACKWARD(member, kind) TILEWRIGHT_MEMBER_OF(PlainBackwardParameters, member, kind)
#define TILEWRIGHT_BACKWARD_STRIDES(member) TILEWRIGHT_STRIDES_OF(PlainBackwardParameters, member)
inline constexpr Member backward[] = {
    TILEWRIGHT_BACKWARD(out_gradient, "pointer"),         TILEWRIGHT_BACKWARD(lse_gradient, "pointer"),
    TILEWRIGHT_BACKWARD(query_gradient, "pointer"),       TILEWRIGHT_BACKWARD(key_gradient, "pointer"),
    TILEWRIGHT_BACKWARD(value_gradient, "pointer"),       TILEWRIGHT_BACKWARD(sink_gradient, "pointer"),
    TILEWRIGHT_BACKWARD_STRIDES(out_gradient_strides),    TILEWRIGHT_BACKWARD_STRIDES(query_gradient_strides),
    TILEWRIGHT_BACKWARD_STRIDES(key_gradient_strides),    TILEWRIGHT_BACKWARD_STRIDES(value_gradient_strides),
    TILEWRIGHT_BACKWARD(log_sums, "pointer"),             TILEWRIGHT_BACKWARD(deltas, "pointer"),
    TILEWRIGHT_BACKWARD(log_sum_parts, "pointer"),        TILEWRIGHT_BACKWARD(delta_parts, "pointer"),
    TILEWRIGHT_BACKWARD(padded_queries, "int32"),         TILEWRIGHT_BACKWARD(prepared_heads, "int32"),
    TILEWRIGHT_BACKWARD(query_sums, "pointer"),           TILEWRIGHT_BACKWARD(turns, "pointer"),
    TILEWRIGHT_BACKWARD(counts, "pointer"),
};
static_assert(offsetof(DecodeParameters, forward) == 0 && offsetof(PlainBackwardParameters, forward) == 0);
#undef TILEWRIGHT_BACKWARD_STRIDES
#undef TILEWRIGHT_BACKWARD
#undef TILEWRIGHT_DECODE
#undef TILEWRIGHT_MEMBER
#undef TILEWRIGHT_MEMBER_OF
#undef TILEWRIGHT_STRIDES
#undef TILEWRIGHT_STRIDES_OF

// A member that is missing above leaves a gap of more than padding.
template <size_t count>
constexpr bool cover_all(const Member (&list)[count], size_t begin, size_t size, size_t alignment) {
    size_t end = begin;
    for (const Member& member : list) {
        if (member.offset < end || member.offset - end >= member.size) return false;
        end = member.offset + member.size;
    }
    return size - end < alignment;
}
static_assert(cover_all(forward, 0, sizeof(ForwardParameters), alignof(ForwardParameters)), "list every member of ForwardParameters here, in order");
static_assert(cover_all(decode, sizeof(ForwardParameters), sizeof(DecodeParameters), alignof(DecodeParameters)), "list every member of DecodeParameters here, in order");
static_assert(cover_all(backward, sizeof(ForwardParameters), sizeof(PlainBackwardParameters), alignof(PlainBackwardParameters)), "list every member of PlainBackwardParameters here, in order");

inline std::vector<Member> of(KernelKind kind) {
    std::vector<Member> list(std::begin(forward), std::end(forward));
    if (kind == KernelKind::attention_decode) list.insert(list.end(), std::begin(decode), std::end(decode));
    if (is_backward(kind)) list.insert(list.end(), std::begin(backward), std::end(backward));
    return list;
}

inline bool is_pointer(const Member& member) { return std::string_view(member.kind) == "pointer"; }
// Whether an operation with such a kernel writes what the member points to. A workspace has the name of its first part.
inline bool is_written(KernelKind kind, std::string_view name) {
    if (is_backward(kind)) return name.ends_with("_gradient") ? name != "out_gradient" && name != "lse_gradient" : name == "log_sums";
    for (const char* written : {"out", "lse", "scores", "tiles_dealt", "partial_out"})
        if (name == written) return true;
    return false;
}

}  // namespace tilewright::bundle_members
