// What the tiled path allocates: nothing that grows with seq_q * seq_kv; and what opening the library costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "tilewright/attention.h"

namespace tilewright {
namespace {

// A line of /proc/self/status, in bytes: VmRSS is resident now, VmHWM the most ever.
int64_t status_bytes(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
    return 0;
}

AttentionOptions two_threads() {
    AttentionOptions options;
    options.threads = 2;
    options.database.use_user = options.database.use_system = false;
    return options;
}

TEST(Memory, OpeningTheLibraryAndItsDatabasesCostsUnder30Megabytes) {
    int64_t before = status_bytes("VmRSS");
    Result<Attention> attention = Attention::open(two_threads());
    ASSERT_TRUE(attention.ok()) << attention.status().message();
    EXPECT_LT(status_bytes("VmRSS") - before, 30'000'000);
}

TEST(Memory, DoesNotGrowWithTheScoreMatrix) {
    Problem p = *parse_problem("forward:b1,hq1,hkv1,sq65536,skv65536,d32,fp32,causal");  // scores: 17.2e9 bytes
    Result<Attention> attention = Attention::open(two_threads());
    ASSERT_TRUE(attention.ok()) << attention.status().message();
    ASSERT_TRUE(attention->prepare(p).ok());
    std::vector<float> query(65536 * 32), key = query, value = query, out = query;
    for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<float>(i / 32);
    ForwardTensors t;
    t.query = dense(static_cast<const void*>(query.data()), 1, p.seq_q, p.head_dim);
    t.key = dense(static_cast<const void*>(key.data()), 1, p.seq_kv, p.head_dim);
    t.value = dense(static_cast<const void*>(value.data()), 1, p.seq_kv, p.head_dim_v);
    t.out = dense(static_cast<void*>(out.data()), 1, p.seq_q, p.head_dim_v);
    int64_t before = status_bytes("VmHWM");
    Status status = attention->forward(p, t);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_LT(status_bytes("VmHWM") - before, 16'000'000);
    for (size_t row : {size_t{0}, size_t{1}, size_t{999}, size_t{65535}})
        EXPECT_NEAR(out[row * 32], static_cast<double>(row) / 2, 1e-4 * static_cast<double>(row) + 1e-6);
}

// A window keeps it short; without one the same memory would do.
TEST(Memory, OfABackwardDoesNotGrowWithTheScoreMatrix) {
    Problem p = *parse_problem("backward:b1,hq1,hkv1,sq65536,skv65536,d16,fp32,window1023:0");  // scores: 17.2e9 bytes
    Result<Attention> attention = Attention::open(two_threads());
    ASSERT_TRUE(attention.ok()) << attention.status().message();
    ASSERT_TRUE(attention->prepare(p).ok());
    // Queries are 0, so that each key weighs 1/1024; dOut is 1, so that every full row adds so much to the gradients of its values.
    std::vector<float> zeros(65536 * 16), ones(zeros.size(), 1), out(zeros.size()), lse(65536), gradients[3] = {zeros, zeros, zeros};
    for (size_t i = 0; i < lse.size(); ++i) lse[i] = std::log(static_cast<float>(std::min<size_t>(i + 1, 1024)));
    Result<int64_t> bytes = attention->backward_workspace_bytes(p);
    ASSERT_TRUE(bytes.ok());
    EXPECT_LE(*bytes, 16 * 65536 * 16);  // proportional to rows times columns
    std::vector<double> workspace(static_cast<size_t>(*bytes) / 8 + 1);
    auto in = [&](const std::vector<float>& x) { return dense(static_cast<const void*>(x.data()), 1, p.seq_q, p.head_dim); };
    auto to = [&](std::vector<float>& x) { return dense(static_cast<void*>(x.data()), 1, p.seq_q, p.head_dim); };
    BackwardTensors t;
    t.forward.query = t.forward.key = in(zeros), t.forward.value = in(ones), t.forward.out = to(out), t.forward.lse = lse.data();
    t.out_gradient = in(ones);
    t.query_gradient = to(gradients[0]), t.key_gradient = to(gradients[1]), t.value_gradient = to(gradients[2]);
    t.workspace = workspace.data(), t.workspace_bytes = *bytes;
    int64_t before = status_bytes("VmHWM");
    Status status = attention->backward(p, t);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_LT(status_bytes("VmHWM") - before, 16'000'000);
    EXPECT_NEAR(gradients[2][30000 * 16], 1, 1e-4);
    EXPECT_NEAR(gradients[2][65535 * 16], 1.0 / 1024, 1e-6);
    EXPECT_EQ(gradients[0][30000 * 16], 0);
}

}  // namespace
}  // namespace tilewright
