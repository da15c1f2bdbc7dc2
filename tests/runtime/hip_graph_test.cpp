// Calls captured into HIP graphs, through the public interface, on a HIP runtime of our own that refuses what no capture survives.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backends/amd/compiler.h"
#include "backends/fake_hip/fake_hip.h"
#include "kernels/parameters.h"
#include "opened.h"

namespace tilewright {
namespace {

using testing::Each;
using testing::HasSubstr;

// What a caller has of HIP beside this library.
struct Hip {
    void* library = dlopen(TILEWRIGHT_FAKE_HIP, RTLD_NOW | RTLD_LOCAL);
    template <class Function>
    Function* get(const char* name) const {
        return reinterpret_cast<Function*>(dlsym(library, name));
    }
    fake_hip::State& state = get<fake_hip::StateFunction>("fake_hip_state")();
    int begin(void* stream) const { return get<int(void*, int)>("hipStreamBeginCapture")(stream, 0); }
    int end(void* stream, void** graph) const { return get<int(void*, void**)>("hipStreamEndCapture")(stream, graph); }
    int replay(void* graph, void* stream, int times) const {
        void* executable = nullptr;
        int error = get<int(void**, void*, void*, char*, size_t)>("hipGraphInstantiate")(&executable, graph, nullptr, nullptr, 0);
        for (int i = 0; i < times && !error; ++i) error = get<int(void*, void*)>("hipGraphLaunch")(executable, stream);
        return error | get<int(void*)>("hipGraphExecDestroy")(executable) | get<int(void*)>("hipGraphDestroy")(graph);
    }
};

class HipGraph : public testing::Test {
protected:
    static void SetUpTestSuite() { setenv("TILEWRIGHT_HIP_LIBRARY", TILEWRIGHT_FAKE_HIP, 1); }
    void SetUp() override {
        if (const auto& compiler = amd::compiler(); !compiler.ok()) GTEST_SKIP() << compiler.status().message();
        hip_.state = {};
        auto opened = Attention::open(options_on("amd:0"));
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        attention_.emplace(*std::move(opened));
    }
    // Nothing is read or written: all tensors are somewhere.
    static ForwardTensors tensors(const Problem& p) {
        static char memory[64];
        ForwardTensors t;
        t.query = dense(static_cast<const void*>(memory), p.heads_q, p.seq_q, p.head_dim), t.out = dense(static_cast<void*>(memory), p.heads_q, p.seq_q, p.head_dim_v);
        t.key = dense(static_cast<const void*>(memory), p.heads_kv, p.seq_kv, p.head_dim), t.value = dense(static_cast<const void*>(memory), p.heads_kv, p.seq_kv, p.head_dim_v);
        t.lse = reinterpret_cast<float*>(memory);
        return t;
    }
    // Captures a call that was prepared, checks that nothing but launches went to HIP, and gives the graph.
    template <class Call>
    void* capture(Call&& call, size_t launches, size_t argument_bytes) {
        hip_.state.argument_bytes = argument_bytes;
        EXPECT_EQ(hip_.begin(stream_), 0);
        hip_.state.calls.clear();
        Status status = call();
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_THAT(hip_.state.calls, Each(testing::AnyOf("hipGetDevice", "hipSetDevice", "hipModuleLaunchKernel")));
        EXPECT_EQ(hip_.state.graph.launches.size(), launches);
        EXPECT_TRUE(hip_.state.launches.empty());
        void* graph = nullptr;
        EXPECT_EQ(hip_.end(stream_, &graph), 0);
        return graph;
    }
    // Replayed on another stream, its launches are those of a call there.
    template <class Call>
    void expect_replays_as(void* graph, Call&& call) {
        void* other = &other_stream_place_;
        ASSERT_NE(graph, nullptr);
        ASSERT_EQ(hip_.replay(graph, other, 2), 0);
        std::vector<fake_hip::Launch> replayed;
        std::swap(replayed, hip_.state.launches);
        for (int i = 0; i < 2; ++i) ASSERT_TRUE(call(other).ok());
        const std::vector<fake_hip::Launch>& called = hip_.state.launches;
        ASSERT_EQ(replayed.size(), called.size());
        for (size_t i = 0; i < called.size(); ++i) {
            EXPECT_TRUE(std::equal(called[i].grid, called[i].grid + 3, replayed[i].grid)) << i;
            EXPECT_EQ(called[i].block[0], replayed[i].block[0]) << i;
            EXPECT_EQ(called[i].arguments, replayed[i].arguments) << i;
            EXPECT_EQ(called[i].stream, replayed[i].stream) << i;
        }
    }
    Hip hip_;
    char stream_place_ = 0, other_stream_place_ = 0;
    void* stream_ = &stream_place_;
    std::optional<Attention> attention_;
};

TEST_F(HipGraph, AForwardIsOneLaunch) {
    const Problem p = *parse_problem("forward:b2,hq4,hkv2,sq100,skv200,d64,bf16,causal");
    ASSERT_TRUE(attention_->prepare(p).ok());
    auto call = [&](void* stream) { return attention_->forward(p, tensors(p), stream); };
    void* graph = capture([&] { return call(stream_); }, 1, sizeof(kernel::ForwardParameters));
    expect_replays_as(graph, call);
}

TEST_F(HipGraph, ABackwardIsItsLaunchesInOrder) {
    const Problem p = *parse_problem("backward:b1,hq4,hkv2,sq100,skv200,d64,bf16,causal");
    ASSERT_TRUE(attention_->prepare(p).ok());
    BackwardTensors t;
    t.forward = tensors(p);
    t.out_gradient = t.forward.query;
    t.query_gradient = t.forward.out, t.key_gradient = t.value_gradient = dense(t.forward.out.data, p.heads_kv, p.seq_kv, p.head_dim);
    std::vector<char> workspace(static_cast<size_t>(*attention_->backward_workspace_bytes(p)) + 16);
    t.workspace = workspace.data() + (16 - reinterpret_cast<uintptr_t>(workspace.data()) % 16) % 16;
    t.workspace_bytes = static_cast<int64_t>(workspace.size()) - 16;
    auto call = [&](void* stream) { return attention_->backward(p, t, stream); };
    void* graph = capture([&] { return call(stream_); }, 3, sizeof(kernel::BackwardParameters));
    expect_replays_as(graph, call);
}

TEST_F(HipGraph, ADecodeReadsItsLengthsWhereTheyLieAtEveryReplay) {
    const Problem p = *parse_problem("decode:b3,hq8,hkv2,sq1,skv5000,d64,bf16");
    ASSERT_TRUE(attention_->prepare(p).ok());
    static const int32_t lengths[3] = {7, 0, 5000};
    DecodeTensors t;
    const ForwardTensors of = tensors(p);
    t.query = of.query, t.key = of.key, t.value = of.value, t.out = of.out, t.lse = of.lse, t.lengths = lengths;
    std::vector<char> workspace(static_cast<size_t>(*attention_->decode_workspace_bytes(p)) + 16);
    t.workspace = workspace.data() + (16 - reinterpret_cast<uintptr_t>(workspace.data()) % 16) % 16;
    t.workspace_bytes = static_cast<int64_t>(workspace.size()) - 16;
    auto call = [&](void* stream) { return attention_->decode(p, t, stream); };
    void* graph = capture([&] { return call(stream_); }, 1, sizeof(kernel::DecodeParameters));
    kernel::DecodeParameters seen;
    std::memcpy(&seen, hip_.state.graph.launches.at(0).arguments.data(), sizeof seen);
    EXPECT_EQ(seen.lengths, lengths);
    EXPECT_GT(seen.units, 1);
    expect_replays_as(graph, call);
}

TEST_F(HipGraph, ARefusedCallLeavesTheCaptureAsItWas) {
    const Problem p = *parse_problem("forward:b2,hq4,hkv2,sq100,skv200,d64,bf16,causal");
    ASSERT_TRUE(attention_->prepare(p).ok());
    void* graph = capture(
        [&] {
            ForwardTensors wrong = tensors(p);
            wrong.key.column_stride = 2;
            EXPECT_EQ(attention_->forward(p, wrong, stream_).code(), StatusCode::invalid_argument);
            return attention_->forward(p, tensors(p), stream_);
        },
        1, sizeof(kernel::ForwardParameters));
    EXPECT_EQ(hip_.replay(graph, stream_, 1), 0);
}

TEST_F(HipGraph, WhatHipRefusesDuringACaptureIsNamed) {
    const Problem p = *parse_problem("forward:b2,hq4,hkv2,sq100,skv200,d64,bf16,causal");
    ASSERT_TRUE(attention_->prepare(p).ok());
    hip_.state.argument_bytes = sizeof(kernel::ForwardParameters);
    ASSERT_EQ(hip_.begin(stream_), 0);
    Status on_default_stream = attention_->forward(p, tensors(p));
    EXPECT_EQ(on_default_stream.code(), StatusCode::runtime);
    EXPECT_THAT(on_default_stream.message(), HasSubstr("hipModuleLaunchKernel failed: hipErrorStreamCaptureUnsupported"));
    EXPECT_THAT(attention_->allocate(16).status().message(), HasSubstr("hipMalloc failed: hipErrorStreamCaptureUnsupported"));
    EXPECT_THAT(attention_->synchronize().message(), HasSubstr("hipDeviceSynchronize failed: hipErrorStreamCaptureUnsupported"));
    void* graph = nullptr;
    EXPECT_NE(hip_.end(stream_, &graph), 0);
    // And nothing of it stays: the next capture is a good one.
    graph = capture([&] { return attention_->forward(p, tensors(p), stream_); }, 1, sizeof(kernel::ForwardParameters));
    EXPECT_EQ(hip_.replay(graph, stream_, 1), 0);
}

}  // namespace
}  // namespace tilewright
