// The C interface: what it adds to the C++ one, which is sizes of structures and errors as numbers; and that its capability query agrees with its calls.
#include "tilewright/tilewright.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace {

using testing::HasSubstr;

class CApi : public testing::Test {
protected:
    static tilewright_context* context() {
        static tilewright_context* opened = [] {
            tilewright_options options = TILEWRIGHT_INIT_OPTIONS;
            options.database = "/nonexistent/tilewright.db", options.threads = 2;
            tilewright_context* made = nullptr;
            EXPECT_EQ(tilewright_open(&options, &made), TILEWRIGHT_OK) << tilewright_last_error();
            return made;
        }();
        return opened;
    }
    static tilewright_problem problem(const char* text) {
        tilewright_problem parsed = TILEWRIGHT_INIT_PROBLEM;
        EXPECT_EQ(tilewright_parse_problem(text, &parsed), TILEWRIGHT_OK) << tilewright_last_error();
        return parsed;
    }
    // One buffer for every tensor of a call: what is computed does not matter here.
    static tilewright_tensor tensor(const tilewright_problem& p) { return {memory().data(), 0, 0, p.head_dim, 1}; }
    static std::vector<double>& memory() {
        static std::vector<double> all(1 << 20);
        return all;
    }
    static tilewright_status call(tilewright_problem p) {
        tilewright_forward_tensors f = TILEWRIGHT_INIT_FORWARD_TENSORS;
        f.query = f.key = f.value = f.out = tensor(p);
        if (p.bias) f.bias = tensor(p);
        f.lse = reinterpret_cast<float*>(memory().data()), f.softcap = 1;
        if (p.operation == TILEWRIGHT_FORWARD) return tilewright_forward(context(), &p, &f, nullptr);
        int64_t bytes = 0;
        if (tilewright_status status = tilewright_workspace_bytes(context(), &p, &bytes); status != TILEWRIGHT_OK) return status;
        static std::vector<double> workspace;
        workspace.assign(static_cast<size_t>(bytes) / 8 + 1, 0);
        if (p.operation == TILEWRIGHT_BACKWARD) {
            tilewright_backward_tensors b = TILEWRIGHT_INIT_BACKWARD_TENSORS;
            b.forward = &f, b.workspace = workspace.data(), b.workspace_bytes = bytes;
            b.out_gradient = b.query_gradient = b.key_gradient = b.value_gradient = tensor(p);
            return tilewright_backward(context(), &p, &b, nullptr);
        }
        tilewright_decode_tensors d = TILEWRIGHT_INIT_DECODE_TENSORS;
        d.query = d.key = d.value = d.out = tensor(p), d.workspace = workspace.data(), d.workspace_bytes = bytes;
        if (p.bias) d.bias = tensor(p);
        return tilewright_decode(context(), &p, &d, nullptr);
    }
};

TEST_F(CApi, PrepareAgreesWithWhatTheCallsAccept) {
    for (const char* text : {"forward:hq2,sq5,skv7,d16,fp32,causal", "backward:hq2,sq5,skv7,d16,fp32,causal", "decode:b2,hq2,sq1,skv70,d16,fp32", "forward:sq5,d16,fp32,bias",
                             "backward:sq5,d16,fp32,bias", "decode:sq1,skv70,d16,fp32,bias", "decode:b3,hq4,hkv2,sq4,skv40,d40,dv24,bf16,causal"}) {
        tilewright_problem p = problem(text);
        tilewright_status prepared = tilewright_prepare(context(), &p);
        std::string why = tilewright_last_error();
        EXPECT_EQ(call(p), prepared) << text << ": " << why << "; " << tilewright_last_error();
    }
    for (int32_t operation : {1, 2, 3}) {
        tilewright_problem wide = problem("forward:sq5,d16,fp32");
        wide.operation = operation, wide.head_dim = 1000;
        EXPECT_EQ(tilewright_prepare(context(), &wide), TILEWRIGHT_INVALID_ARGUMENT);
        EXPECT_EQ(call(wide), TILEWRIGHT_INVALID_ARGUMENT);
    }
}

TEST_F(CApi, AProblemOfAnotherOperationIsRefusedByName) {
    tilewright_problem p = problem("backward:sq5,d16,fp32");
    tilewright_forward_tensors f = TILEWRIGHT_INIT_FORWARD_TENSORS;
    EXPECT_EQ(tilewright_forward(context(), &p, &f, nullptr), TILEWRIGHT_UNSUPPORTED);
    EXPECT_THAT(tilewright_last_error(), HasSubstr("not backward:"));
    p.operation = 4;
    EXPECT_EQ(tilewright_prepare(context(), &p), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_THAT(tilewright_last_error(), HasSubstr("operation is 4; it must be from 1 to 3"));
    int64_t bytes;
    p.operation = TILEWRIGHT_DECODE;
    EXPECT_EQ(tilewright_backward_workspace_bytes(context(), &p, 0, &bytes), TILEWRIGHT_UNSUPPORTED);
}

TEST_F(CApi, AnOlderCallersProblemIsAForwardAndIsNotWrittenBehindItsEnd) {
    constexpr size_t old_size = offsetof(tilewright_problem, operation);
    tilewright_problem p = TILEWRIGHT_INIT_PROBLEM;
    std::memset(reinterpret_cast<char*>(&p) + old_size, 0x7f, sizeof p - old_size);
    p.struct_size = old_size;
    ASSERT_EQ(tilewright_parse_problem("forward:hq2,sq5,d16,fp32,causal", &p), TILEWRIGHT_OK) << tilewright_last_error();
    EXPECT_EQ(p.operation, 0x7f7f7f7f);
    EXPECT_EQ(p.struct_size, old_size);
    EXPECT_EQ(tilewright_prepare(context(), &p), TILEWRIGHT_OK) << tilewright_last_error();
    EXPECT_EQ(tilewright_parse_problem("decode:sq1,skv5,d16,fp32", &p), TILEWRIGHT_UNSUPPORTED);
    p.struct_size = old_size - 1;
    EXPECT_EQ(tilewright_prepare(context(), &p), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_THAT(tilewright_last_error(), HasSubstr("struct_size is 103; this library needs at least 104"));
}

TEST_F(CApi, ARepeatableBackwardIsAskedForInTheProblemOrInTheCall) {
    tilewright_problem p = problem("backward:hq2,sq5,d16,fp32,deterministic");
    EXPECT_EQ(p.deterministic, 1);
    EXPECT_EQ(tilewright_prepare(context(), &p), TILEWRIGHT_OK) << tilewright_last_error();
    EXPECT_EQ(call(p), TILEWRIGHT_OK) << tilewright_last_error();
    tilewright_config config = TILEWRIGHT_INIT_CONFIG;
    ASSERT_EQ(tilewright_lookup(context(), &p, &config), TILEWRIGHT_OK);
    EXPECT_THAT(config.json, testing::Not(HasSubstr("\"dq\":1")));
    p.operation = TILEWRIGHT_FORWARD;
    EXPECT_EQ(tilewright_prepare(context(), &p), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_THAT(tilewright_last_error(), HasSubstr("deterministic is for backward problems"));
}

// `least`: of the first version's structure, where later ones have more.
template <class Struct, class Call>
void expect_size_wanted(Struct given, const char* what, Call call, size_t least = sizeof(Struct)) {
    given.struct_size = least - 1;
    EXPECT_EQ(call(&given), TILEWRIGHT_INVALID_ARGUMENT) << what;
    EXPECT_THAT(tilewright_last_error(), HasSubstr(std::string(what) + ".struct_size is " + std::to_string(least - 1) + "; this library needs at least"));
    given.struct_size = sizeof given + 64;  // a newer caller's
    (void)call(&given);
    EXPECT_THAT(tilewright_last_error(), testing::Not(HasSubstr("struct_size"))) << what;
}

TEST_F(CApi, EveryStructureSaysItsSizeAndALargerOneIsTaken) {
    tilewright_problem p = problem("forward:sq5,d16,fp32"), b = problem("backward:sq5,d16,fp32"), d = problem("decode:sq1,skv5,d16,fp32");
    tilewright_context* opened = nullptr;
    const tilewright_forward_tensors f = TILEWRIGHT_INIT_FORWARD_TENSORS;
    expect_size_wanted(tilewright_forward_tensors(f), "tensors", [&](auto* t) { return tilewright_forward(context(), &p, t, nullptr); });
    expect_size_wanted(tilewright_packed_sequences TILEWRIGHT_INIT_PACKED_SEQUENCES, "sequences", [&](auto* s) { return tilewright_forward_packed(context(), &p, &f, s, nullptr); });
    expect_size_wanted(tilewright_backward_tensors TILEWRIGHT_INIT_BACKWARD_TENSORS, "tensors", [&](auto* t) { return tilewright_backward(context(), &b, t, nullptr); },
                       offsetof(tilewright_backward_tensors, bias_gradient));
    expect_size_wanted(tilewright_decode_tensors TILEWRIGHT_INIT_DECODE_TENSORS, "tensors", [&](auto* t) { return tilewright_decode(context(), &d, t, nullptr); });
    expect_size_wanted(tilewright_append_tensors TILEWRIGHT_INIT_APPEND_TENSORS, "tensors", [&](auto* t) { return tilewright_append(context(), &d, t, nullptr); });
    tilewright_options none = TILEWRIGHT_INIT_OPTIONS;
    none.device = "none:0";
    expect_size_wanted(none, "options", [&](auto* o) { return tilewright_open(o, &opened); });
    EXPECT_EQ(opened, nullptr);
}

TEST_F(CApi, NamesWhatIsNullOrTooSmall) {
    tilewright_problem p = problem("backward:sq5,d16,fp32");
    tilewright_backward_tensors b = TILEWRIGHT_INIT_BACKWARD_TENSORS;
    EXPECT_EQ(tilewright_backward(context(), &p, nullptr, nullptr), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_STREQ(tilewright_last_error(), "tensors is null");
    EXPECT_EQ(tilewright_backward(context(), &p, &b, nullptr), TILEWRIGHT_INVALID_ARGUMENT);  // without its forward
    b.struct_size = 8;
    EXPECT_EQ(tilewright_backward(context(), &p, &b, nullptr), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_THAT(tilewright_last_error(), HasSubstr("struct_size is 8"));
    EXPECT_EQ(tilewright_decode(nullptr, &p, nullptr, nullptr), TILEWRIGHT_INVALID_ARGUMENT);
    EXPECT_EQ(tilewright_workspace_bytes(context(), &p, nullptr), TILEWRIGHT_INVALID_ARGUMENT);
}

}  // namespace
