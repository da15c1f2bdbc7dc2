// What AMD's kernels cannot do is refused before a compiler is asked.
#include <gmock/gmock.h>

#include "backends/family_text.h"

namespace tilewright {
namespace {

KernelSpec spec_of(KernelKind kind, DType dtype) {
    KernelSpec spec;
    spec.kind = kind;
    spec.problem.head_dim = spec.problem.head_dim_v = 64;
    spec.problem.dtype = dtype;
    spec.config = {.block_q = 64, .block_kv = 64, .stages = 1, .workers = 4};
    return spec;
}

TEST(AmdText, FloatsAreRefusedByAllThatMultiplies) {
    for (const char* name : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"})
        for (KernelKind kind : {KernelKind::attention_forward, KernelKind::attention_materialized, KernelKind::attention_decode, KernelKind::attention_backward_prologue, KernelKind::attention_backward_keys,
                                KernelKind::attention_backward_queries, KernelKind::attention_backward_bias, KernelKind::attention_backward_sink}) {
            SCOPED_TRACE(std::string(name) + " " + tilewright::name(kind));
            const Result<FamilyText> text = family_text(spec_of(kind, DType::fp32), *find_arch(name));
            EXPECT_EQ(text.status().code(), StatusCode::unsupported);
            EXPECT_THAT(text.status().message(), testing::HasSubstr("not fp32"));
            EXPECT_TRUE(family_text(spec_of(kind, DType::bf16), *find_arch(name)).ok()) << family_text(spec_of(kind, DType::bf16), *find_arch(name)).status().message();
        }
    EXPECT_TRUE(family_text(spec_of(KernelKind::append, DType::fp32), *find_arch("gfx942")).ok());
}

TEST(AmdText, EveryKernelWithTilesSaysHowMuchLdsItTakes) {
    const Arch& arch = *find_arch("gfx942");
    // K and V of a tile; of a backward over keys, Q and dO of one, straight and transposed; over queries K twice, V once.
    const int tile = 2 * 64 * 64;
    EXPECT_EQ(family_text(spec_of(KernelKind::attention_forward, DType::bf16), arch)->static_shared_bytes, 2 * tile);
    EXPECT_EQ(family_text(spec_of(KernelKind::attention_decode, DType::bf16), arch)->static_shared_bytes, 2 * tile);
    EXPECT_EQ(family_text(spec_of(KernelKind::attention_backward_keys, DType::bf16), arch)->static_shared_bytes, 4 * tile);
    EXPECT_EQ(family_text(spec_of(KernelKind::attention_backward_queries, DType::bf16), arch)->static_shared_bytes, 3 * tile);
}

}  // namespace
}  // namespace tilewright
