// The same as memory_full_test.cpp on an NVIDIA device: a backward at 65536 rows needs nothing of the size of the score matrix, which would be more than the
// device has. Skipped where there is none.
#include <gtest/gtest.h>

#include <vector>

#include "tilewright/attention.h"

namespace tilewright {
namespace {

class Memory : public testing::Test {
protected:
    void SetUp() override {
        AttentionOptions options;
        options.device = "nvidia:0", options.database.use_user = options.database.use_system = false;
        Result<Attention> opened = Attention::open(options);
        if (!opened.ok()) GTEST_SKIP() << opened.status().message();
        attention_ = std::make_unique<Attention>(*std::move(opened));
    }
    void TearDown() override {
        for (void* address : owned_) EXPECT_TRUE(attention_->free(address).ok());
    }
    void* allocate(int64_t bytes) {
        Result<void*> address = attention_->allocate(bytes);
        EXPECT_TRUE(address.ok()) << address.status().message();
        if (!address.ok()) return nullptr;
        owned_.push_back(*address);
        std::vector<char> zeros(static_cast<size_t>(bytes));
        EXPECT_TRUE(attention_->copy_to_device(*address, zeros.data(), bytes).ok());
        return *address;
    }
    std::unique_ptr<Attention> attention_;
    std::vector<void*> owned_;
};

// 64 heads' scores would be 64 * 65536^2 * 2 bytes, 550e9. All that is allocated is allocated here.
TEST_F(Memory, OfABackwardDoesNotGrowWithTheScoreMatrix) {
    Problem p = *parse_problem("backward:b1,hq64,hkv64,sq65536,skv65536,d64,bf16,window1023:0");
    Result<int64_t> bytes = attention_->backward_workspace_bytes(p);
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    const int64_t rows = p.heads_q * p.seq_q, tensor_bytes = rows * p.head_dim * 2;
    EXPECT_LE(*bytes, 4 * tensor_bytes);
    auto tensor = [&] { return dense(allocate(tensor_bytes), p.heads_q, p.seq_q, p.head_dim); };
    auto input = [&] { return dense(static_cast<const void*>(allocate(tensor_bytes)), p.heads_q, p.seq_q, p.head_dim); };
    BackwardTensors t;
    t.forward.query = input(), t.forward.key = input(), t.forward.value = input(), t.forward.out = tensor();
    t.forward.lse = static_cast<float*>(allocate(rows * 4)), t.out_gradient = input();
    t.query_gradient = tensor(), t.key_gradient = tensor(), t.value_gradient = tensor();
    t.workspace = allocate(*bytes), t.workspace_bytes = *bytes;
    Status status = attention_->backward(p, t);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(attention_->synchronize().ok());
}

}  // namespace
}  // namespace tilewright
