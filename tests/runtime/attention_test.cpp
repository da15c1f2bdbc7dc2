// The public call: right answers by hand, and one clear sentence for each kind of bad input.
#include "runtime/opened.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace tilewright {
namespace {

using testing::HasSubstr;

class AttentionCall : public testing::Test {
protected:
    static Attention& attention() { return cpu(); }
    static Problem problem(const char* text) { return *parse_problem(text); }
    std::vector<float> zeros = std::vector<float>(4096, 0.0f), values = std::vector<float>(4096), out = std::vector<float>(4096, NAN),
                       lse = std::vector<float>(256, NAN);

    ForwardTensors tensors(const Problem& p) {
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / static_cast<size_t>(p.head_dim_v) % static_cast<size_t>(p.seq_kv));
        ForwardTensors t;
        t.query = dense(static_cast<const void*>(zeros.data()), p.heads_q, p.seq_q, p.head_dim);
        t.key = dense(static_cast<const void*>(zeros.data()), p.heads_kv, p.seq_kv, p.head_dim);
        t.value = dense(static_cast<const void*>(values.data()), p.heads_kv, p.seq_kv, p.head_dim_v);
        t.out = dense(static_cast<void*>(out.data()), p.heads_q, p.seq_q, p.head_dim_v);
        t.lse = lse.data();
        return t;
    }
    std::string error(const Problem& p, const ForwardTensors& t) {
        Status status = attention().forward(p, t);
        EXPECT_EQ(status.code(), StatusCode::invalid_argument);
        return status.message();
    }
};

TEST_F(AttentionCall, AlignsCausalToTheBottomRight) {
    Problem p = problem("forward:sq2,skv5,d8,fp32,causal");
    Status status = attention().forward(p, tensors(p));
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_FLOAT_EQ(out[0], 1.5f);
    EXPECT_FLOAT_EQ(out[8], 2.0f);
    EXPECT_FLOAT_EQ(lse[0], std::log(4.0f));
    EXPECT_FLOAT_EQ(lse[1], std::log(5.0f));
}

TEST_F(AttentionCall, GivesEmptyRowsZeroAndMinusInfinity) {
    Problem p = problem("forward:sq5,skv2,d8,fp32,causal");
    Status status = attention().forward(p, tensors(p));
    ASSERT_TRUE(status.ok()) << status.message();
    for (int i = 0; i < 24; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 0.0f);
    EXPECT_EQ(lse[2], -INFINITY);
    EXPECT_FLOAT_EQ(out[32], 0.5f);
}

TEST_F(AttentionCall, AcceptsAScaleThatIsZeroOrNegativeAndNoLse) {
    Problem p = problem("forward:sq3,skv5,d8,fp32");
    ForwardTensors t = tensors(p);
    t.lse = nullptr;
    for (float scale : {0.0f, -1.0f}) {
        t.scale = scale;
        ASSERT_TRUE(attention().forward(p, t).ok());
        EXPECT_FLOAT_EQ(out[0], 2.0f);
    }
    EXPECT_TRUE(std::isnan(lse[0]));
}

TEST_F(AttentionCall, LaunchesNothingForEmptySizes) {
    Problem p = problem("forward:b0,sq3,skv5,d8,fp32");
    EXPECT_TRUE(attention().forward(p, ForwardTensors{}).ok());
    p.batch = 1, p.seq_kv = 0;
    ForwardTensors t = tensors(problem("forward:sq3,skv5,d8,fp32"));
    ASSERT_TRUE(attention().forward(p, t).ok());
    EXPECT_EQ(out[0], 0.0f);
    EXPECT_EQ(lse[0], -INFINITY);
}

TEST_F(AttentionCall, NamesWhatIsWrongAndTheLimit) {
    Problem p = problem("forward:sq3,skv5,d8,fp32");
    ForwardTensors t = tensors(p);
    t.key.column_stride = 2;
    EXPECT_THAT(error(p, t), HasSubstr("last stride of key is 2; it must be 1"));
    t = tensors(p), t.value.data = nullptr;
    EXPECT_THAT(error(p, t), HasSubstr("value is null"));
    t = tensors(p), p.bias = true;
    EXPECT_THAT(error(p, t), HasSubstr("bias is null"));
    p.bias = false, t.sink = zeros.data();
    EXPECT_THAT(error(p, t), HasSubstr("sink is given, but the problem has none"));
    t = tensors(p), p.softcap = true;
    EXPECT_THAT(error(p, t), HasSubstr("softcap is 0"));
    p.softcap = false, p.heads_q = 3, p.heads_kv = 2;
    EXPECT_THAT(error(p, t), HasSubstr("heads_q is 3"));
    p.heads_q = p.heads_kv = 1, p.head_dim = 600;
    EXPECT_THAT(error(p, t), HasSubstr("head_dim is 600"));
}

TEST_F(AttentionCall, IsSafeFromSeveralThreads) {
    Problem p = problem("forward:hq2,sq7,skv5,d8,fp32");
    std::vector<std::thread> threads;
    std::vector<std::vector<float>> outs(4, std::vector<float>(256, NAN));
    ForwardTensors shared = tensors(p);
    shared.lse = nullptr;
    for (auto& own : outs)
        threads.emplace_back([&own, shared, p] {
            ForwardTensors t = shared;
            t.out = dense(static_cast<void*>(own.data()), p.heads_q, p.seq_q, p.head_dim_v);
            for (int i = 0; i < 20; ++i) EXPECT_TRUE(attention().forward(p, t).ok());
        });
    for (std::thread& thread : threads) thread.join();
    for (auto& own : outs) EXPECT_FLOAT_EQ(own[0], 2.0f);
}

TEST(AttentionOpen, NamesAnUnknownDevice) {
    AttentionOptions options;
    options.device = "tpu:0";
    EXPECT_THAT(Attention::open(options).status().message(), HasSubstr("'tpu'"));
    options.device = "cpu:7";
    EXPECT_THAT(Attention::open(options).status().message(), HasSubstr("cpu:7"));
}

}  // namespace
}  // namespace tilewright
