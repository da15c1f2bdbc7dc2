// The forward kernel's own text, lane by lane, under every layout table, against float64.
#include <gtest/gtest.h>

#include "kernels/attention_forward.h"
#include "spec.h"
#include "table_arch.h"

namespace tilewright::emulated {
namespace {

using kernel::Mask;
namespace layouts = kernel::layouts;

template <class Table, Spec s>
std::string run_table(const kernel::ForwardParameters& parameters, int order) {
    using Arch = TableArch<ConfigOf<kernel::fp32, s>, Table>;
    typename Arch::Arguments arguments{parameters};
    for (int i = 0; i < parameters.tiles; ++i)
        run_block(i, Arch::threads, Arch::warp, Order(order), [&] { kernel::attention_forward<Arch>(arguments, nullptr); });
    return "";
}

using MmaSync = Table<layouts::MmaSync16x8x16, isa::MmaSync16x8x16, false>;
using Wgmma = Table<layouts::Wgmma64x8x16, isa::Wgmma64x8x16, false>;
using Mfma16 = Table<layouts::Mfma16x16x16, isa::Mfma16x16x16, true>;
using Mfma32 = Table<layouts::Mfma32x32x8, isa::Mfma32x32x8, true>;
using Mfma950 = Table<layouts::Mfma16x16x32, isa::Mfma16x16x32, true>;
using Wmma11 = Table<layouts::WmmaGfx11, isa::WmmaGfx11, true>;
using Wmma12 = Table<layouts::WmmaGfx12, isa::WmmaGfx12, true>;

template <class T>
class TablesTest : public testing::Test {
protected:
    // Two strips in each of two warps; wgmma's strip is 64 rows.
    static constexpr int block_q = 4 * T::Layout::m;
    template <Spec s>
    void expect_right(const Case& c) {
        EmulatedKernel kernel = describe<kernel::fp32, s>(c.name, run_table<T, s>);
        EXPECT_EQ(check(kernel, c), "") << c.name;
    }
};
using Tables = testing::Types<MmaSync, Wgmma, Mfma16, Mfma32, Mfma950, Wmma11, Wmma12>;
TYPED_TEST_SUITE(TablesTest, Tables);

TYPED_TEST(TablesTest, SequentialScheduleIsRightOnRaggedGroupedHeads) {
    constexpr Spec s{.head_dim = 32, .head_dim_v = 32, .block_q = TestFixture::block_q, .block_kv = 32, .workers = 2};
    this->template expect_right<s>({.name = "grouped", .batch = 2, .heads_q = 2, .seq_q = 37, .seq_kv = 75});
    this->template expect_right<s>({.name = "one key", .seq_q = 3, .seq_kv = 1});
    this->template expect_right<s>({.name = "no keys", .seq_q = 3, .seq_kv = 0});
}
TYPED_TEST(TablesTest, OverlappedScheduleIsRightUnderACausalMask) {
    constexpr Spec s{.head_dim = 40, .head_dim_v = 20, .block_q = TestFixture::block_q, .block_kv = 32, .workers = 2, .overlapped = true, .mask = Mask::causal};
    this->template expect_right<s>({.name = "bottom right", .seq_q = 70, .seq_kv = 90});
    this->template expect_right<s>({.name = "top left", .seq_q = 50, .seq_kv = 90, .top_left = true});
    this->template expect_right<s>({.name = "rows that see nothing", .seq_q = 80, .seq_kv = 33});
}
TYPED_TEST(TablesTest, VariantsAndWindowsAreRight) {
    constexpr Spec s{.head_dim = 24, .head_dim_v = 24, .block_q = TestFixture::block_q, .block_kv = 32, .workers = 2, .packs_heads = true,
                     .mask = Mask::window, .softcap = true, .bias = true, .alibi = true, .sink = true};
    this->template expect_right<s>({.name = "all variants", .heads_q = 2, .seq_q = 60, .seq_kv = 100, .window_left = 20, .window_right = 5});
}

}  // namespace
}  // namespace tilewright::emulated
