// Cascade: one sequence's keys in two calls, a shared prefix and an own suffix, whose results are merged into that of one call.
#include <cmath>
#include <cstdio>
#include <vector>

#include "tilewright/attention.h"
#include "tilewright/merge.h"

using namespace tilewright;

namespace {

constexpr int heads = 4, head_dim = 64, prefix = 900, keys = 1000;

struct Answer {
    std::vector<float> out = std::vector<float>(heads * head_dim), lse = std::vector<float>(heads);
};

// One query over the keys [first, first + count) of [heads][keys][head_dim].
Result<Answer> decode(Attention& attention, const std::vector<float>& query, const std::vector<float>& key, const std::vector<float>& value, int first, int count) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, parse_problem("decode:hq4,hkv4,sq1,skv" + std::to_string(count) + ",d64,fp32"));
    TILEWRIGHT_ASSIGN_OR_RETURN(int64_t workspace_bytes, attention.decode_workspace_bytes(problem));
    std::vector<double> workspace(static_cast<size_t>(workspace_bytes + 7) / 8);  // zeros, 16-byte aligned
    Answer answer;
    DecodeTensors tensors;
    tensors.query = dense(static_cast<const void*>(query.data()), heads, 1, head_dim);
    tensors.key = dense(static_cast<const void*>(key.data() + first * head_dim), heads, keys, head_dim);
    tensors.value = dense(static_cast<const void*>(value.data() + first * head_dim), heads, keys, head_dim);
    tensors.out = dense(static_cast<void*>(answer.out.data()), heads, 1, head_dim);
    tensors.lse = answer.lse.data();
    tensors.workspace = workspace.data(), tensors.workspace_bytes = workspace_bytes;
    TILEWRIGHT_RETURN_IF_ERROR(attention.decode(problem, tensors));
    return answer;
}

Status run() {
    TILEWRIGHT_ASSIGN_OR_RETURN(Attention attention, Attention::open());
    std::vector<float> query(heads * head_dim), key(heads * keys * head_dim), value(key.size());
    for (size_t i = 0; i < query.size(); ++i) query[i] = std::sin(0.7f * static_cast<float>(i));
    for (size_t i = 0; i < key.size(); ++i) key[i] = std::sin(0.3f * static_cast<float>(i)), value[i] = std::cos(0.1f * static_cast<float>(i));
    TILEWRIGHT_ASSIGN_OR_RETURN(Answer shared, decode(attention, query, key, value, 0, prefix));
    TILEWRIGHT_ASSIGN_OR_RETURN(Answer own, decode(attention, query, key, value, prefix, keys - prefix));
    TILEWRIGHT_ASSIGN_OR_RETURN(Answer whole, decode(attention, query, key, value, 0, keys));
    Answer merged;
    std::vector<AttentionState> states{{shared.out.data(), shared.lse.data()}, {own.out.data(), own.lse.data()}};
    TILEWRIGHT_RETURN_IF_ERROR(attention_merge(states, heads, head_dim, merged.out.data(), merged.lse.data()));
    float difference = 0;
    for (size_t i = 0; i < merged.out.size(); ++i) difference = std::fmax(difference, std::fabs(merged.out[i] - whole.out[i]));
    for (size_t i = 0; i < merged.lse.size(); ++i) difference = std::fmax(difference, std::fabs(merged.lse[i] - whole.lse[i]));
    std::printf("largest difference from one call: %.1e\n", static_cast<double>(difference));
    return {};
}

}  // namespace

int main() {
    Status status = run();
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
    return status.ok() ? 0 : 1;
}
