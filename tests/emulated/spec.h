// A kernel's compile-time configuration as one value, and the seam's Config made from it.
#pragma once
#include "backward.h"
#include "cases.h"
#include "kernels/tile/tile.h"

namespace tilewright::emulated {

struct Spec {
    int head_dim = 64, head_dim_v = 64, block_q = 64, block_kv = 64, stages = 1, workers = 4, blocks = 1, slack = 8, dies = 1, early_kb = 0, dq = 0;
    bool overlapped = false, turns = false, packs_heads = false, persistent = false;
    kernel::Mask mask = kernel::Mask::none;
    bool softcap = false, bias = false, alibi = false, sink = false, rescaled = false, aligned = true, packed = false, paged = false;
};

template <class Element_, Spec s>
struct ConfigOf {
    using Element = Element_;
    static constexpr int head_dim = s.head_dim, head_dim_v = s.head_dim_v, block_q = s.block_q, block_kv = s.block_kv, stages = s.stages;
    static constexpr int workers = s.workers, blocks = s.blocks, slack = s.slack, dies = s.dies, early_kb = s.early_kb;
    static constexpr bool overlapped = s.overlapped, turns = s.turns, packs_heads = s.packs_heads, persistent = s.persistent;
    static constexpr kernel::Mask mask = s.mask;
    static constexpr bool softcap = s.softcap, bias = s.bias, alibi = s.alibi, sink = s.sink, rescaled = s.rescaled, aligned = s.aligned, packed = s.packed, paged = s.paged;
};

constexpr Type type_of(kernel::fp32) { return Type::fp32; }
constexpr Type type_of(kernel::fp16) { return Type::fp16; }
constexpr Type type_of(kernel::bf16) { return Type::bf16; }

template <class Element, Spec s>
EmulatedKernel describe(std::string name, std::string (*run)(const kernel::ForwardParameters&, int)) {
    return {std::move(name), type_of(Element{}), s.head_dim, s.head_dim_v, s.block_q, s.mask, s.packs_heads,
            s.softcap,       s.bias,             s.alibi,    s.sink,       s.rescaled, s.aligned, run};
}

template <class Element, Spec s, Pass pass>
struct BackwardConfigOf : ConfigOf<Element, s> {
    static constexpr int dq = pass == Pass::queries || pass == Pass::bias ? 0 : s.dq;
    static constexpr bool over_keys = pass != Pass::queries && pass != Pass::bias, gives_scored = pass != Pass::values_alone && pass != Pass::bias;
    static constexpr bool gives_carried = pass == Pass::keys || pass == Pass::values_alone, gives_bias = pass == Pass::bias;
};

// As in a problem's text.
template <class Element, Spec s>
std::string backward_problem() {
    constexpr Type type = type_of(Element{});
    std::string problem = "d" + std::to_string(s.head_dim) + ",dv" + std::to_string(s.head_dim_v) + (type == Type::fp16 ? ",fp16" : type == Type::bf16 ? ",bf16" : ",fp32");
    problem += s.mask == kernel::Mask::causal ? ",causal" : s.mask == kernel::Mask::window ? ",window37:6" : "";
    return problem + (s.softcap ? ",softcap" : "") + (s.bias ? ",bias" : "") + (s.alibi ? ",alibi" : "") + (s.sink ? ",sink" : "");
}

}  // namespace tilewright::emulated
