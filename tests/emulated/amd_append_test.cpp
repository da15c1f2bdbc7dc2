// Appending to a cache on AMD, on fibers: every row in its place, nothing else touched, sequences without place named.
#include "runtime/append_call.h"

#include <gtest/gtest.h>

#include "kernels/parameters.h"

namespace tilewright::emulated {

struct AppendKernel {  // as in amd_kernels.h, which is for clang alone
    int head_dim, head_dim_v;
    bool paged;
    void (*run)(const kernel::AppendParameters& parameters);
};
std::vector<AppendKernel> append_kernels();

namespace {

TEST(AmdAppend, WritesWhatHasPlaceAndNamesTheFirstThatHasNone) {
    for (const AppendKernel& kernel : append_kernels()) {
        const std::string text = "decode:hkv2,hq2,sq1,skv100,d" + std::to_string(kernel.head_dim) + ",dv" + std::to_string(kernel.head_dim_v) + ",bf16";
        AppendCall call(text.c_str(), {0, 60, 15, 61, 100, -1, 3}, {40, 0, 17, 40, 1, 2, 41}, 40, kernel.paged ? 16 : 0);
        const std::vector<unsigned char> keys = call.keys_after(), values = call.values_after();
        const AppendTensors t = call.tensors();
        auto strides = [](const auto& tensor) { return kernel::Strides{tensor.batch_stride, tensor.head_stride, tensor.row_stride}; };
        kernel::AppendParameters p{};
        p.key = t.key.data, p.value = t.value.data, p.key_cache = t.key_cache.data, p.value_cache = t.value_cache.data;
        p.key_strides = strides(t.key), p.value_strides = strides(t.value), p.key_cache_strides = strides(t.key_cache), p.value_cache_strides = strides(t.value_cache);
        p.lengths = t.lengths, p.counts = t.counts, p.block_table = t.block_table, p.table_stride = t.table_stride;
        p.page_shift = 4, p.pages = static_cast<int>(t.pages), p.batch = 7, p.heads_kv = 2, p.rows = 40, p.capacity = 100, p.status = t.status;
        kernel.run(p);
        EXPECT_EQ(call.key_cache, keys) << text;
        EXPECT_EQ(call.value_cache, values) << text;
        EXPECT_EQ(call.status, 3u) << text;
    }
}

}  // namespace
}  // namespace tilewright::emulated
