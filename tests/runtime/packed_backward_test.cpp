// The backward of packed sequences on the CPU: each sequence as a call of its own, whatever lies beside it; what is refused, and why.
#include "runtime/packed_backward_call.h"

#include <gmock/gmock.h>

#include "runtime/c_call.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

Status backward(PackedBackwardCall& call) {
    Result<int64_t> bytes = cpu().backward_packed_workspace_bytes(call.problem, call.query_rows);
    if (!bytes.ok()) return bytes.status();
    std::vector<char> workspace(static_cast<size_t>(*bytes), 'x');
    BackwardTensors t = call.backward_tensors();
    t.workspace = workspace.data(), t.workspace_bytes = *bytes;
    return cpu().backward_packed(call.problem, t, call.sequences());
}
void expect_right(PackedBackwardCall call, const std::string& what, int poisoned = -1) {
    Status status = backward(call);
    ASSERT_TRUE(status.ok()) << what << ": " << status.message();
    call.expect_gradients(what, poisoned);
}

TEST(PackedBackward, EachSequenceIsWhatBackwardGivesItAlone) {
    const char* const problems[] = {"backward:hq4,hkv2,d24,dv40,fp32,causal", "backward:hq2,hkv1,d16,fp32,causal,topleft,sink", "backward:hq4,hkv1,d8,bf16,softcap,alibi,sink,window20:7"};
    std::mt19937 random(5);
    unsigned seed = 0;
    for (const char* text : problems) {
        ++seed;
        expect_right(PackedBackwardCall(text, random_lengths(random, 6, 150), random_lengths(random, 6, 170), seed), text);
        expect_right(PackedBackwardCall(text, {64, 128, 1, 200}, {128, 64, 300, 1}, seed), text);
    }
}

TEST(PackedBackward, EmptySequencesGiveNothingAndGetZero) {
    PackedBackwardCall call("backward:hq2,hkv1,d8,fp32,causal", {0, 3, 0, 70, 0}, {0, 0, 4, 80, 0}, 2);
    ASSERT_TRUE(backward(call).ok());
    call.expect_gradients("empty");
    const InputTensor q = call.view(call.query_gradient, 2, call.query_rows, 8), k = call.view(call.key_gradient, 1, call.key_rows, 8);
    for (int64_t row = call.query_starts[1]; row < call.query_starts[2]; ++row) EXPECT_EQ(call.get(call.query_gradient, PackedCall::place(q, 1, row)), 0);
    for (int64_t row = call.key_starts[2]; row < call.key_starts[3]; ++row) EXPECT_EQ(call.get(call.key_gradient, PackedCall::place(k, 0, row)), 0);
}

TEST(PackedBackward, OfNoSequenceIsNothing) {
    PackedBackwardCall call("backward:hq2,d8,fp32,sink", {}, {}, 2);
    call.query_rows = 300, call.key_rows = 300;
    for (auto* tensor : {&call.query, &call.key, &call.value, &call.out, &call.out_gradient, &call.query_gradient, &call.key_gradient, &call.value_gradient}) tensor->assign(300 * 2 * 8 * 4, 0xff);
    call.lse.assign(600, NAN), call.lse_gradient.assign(600, NAN);
    Status status = backward(call);
    ASSERT_TRUE(status.ok()) << status.message();
    call.expect_gradients("no sequence");
    EXPECT_EQ(call.sink_gradient, std::vector<float>(2, 0));
}

TEST(PackedBackward, NanInOneSequenceReachesNoOther) {
    for (const char* text : {"backward:hq2,hkv1,d16,fp32,causal", "backward:hq2,d8,bf16"}) expect_right(PackedBackwardCall(text, {20, 9, 33}, {31, 40, 20}, 2, 1), text, 1);
}

TEST(PackedBackward, NamesWhatIsWrong) {
    PackedBackwardCall call("backward:hq2,d8,fp32", {4, 5, 6}, {7, 8, 9}, 2);
    BackwardTensors t = call.backward_tensors();
    Status status = cpu().backward_packed(call.problem, t, call.sequences());
    EXPECT_EQ(status.message(), "the workspace has 0 bytes; it must have " + std::to_string(*cpu().backward_packed_workspace_bytes(call.problem, call.query_rows)));
    call.narrow_query_starts[2] = 3;
    EXPECT_THAT(backward(call).message(), HasSubstr("query_starts: sequence 2 begins at row 3; it must be from 6 to 22"));
    call.narrow_query_starts[2] = 11;
    call.problem.bias = true;
    EXPECT_EQ(backward(call).code(), StatusCode::unsupported);
    call.problem.bias = false, call.problem.operation = Operation::forward;
    EXPECT_EQ(cpu().backward_packed(call.problem, t, call.sequences()).code(), StatusCode::unsupported);
    const Problem packed = *parse_problem("backward:b3,hq2,sq=loguniform(2,9),packed");
    EXPECT_THAT(cpu().backward(packed, t).message(), HasSubstr("backward_packed() computes packed sequences"));
    EXPECT_EQ(cpu().backward_workspace_bytes(packed).status().code(), StatusCode::unsupported);
    EXPECT_EQ(*cpu().backward_packed_workspace_bytes(packed, 20), *cpu().backward_packed_workspace_bytes(*parse_problem("backward:b3,hq2,sq9"), 20));
    EXPECT_TRUE(cpu().prepare(packed).ok());
    EXPECT_EQ(cpu().backward_packed_workspace_bytes(*parse_problem("backward:b3,hq2"), -1).status().code(), StatusCode::invalid_argument);
}

TEST(PackedBackward, IsTheSameFromC) {
    PackedBackwardCall call("backward:hq2,hkv1,d16,fp32,causal", {0, 9, 20}, {5, 9, 30}, 2);
    tilewright_options options = TILEWRIGHT_INIT_OPTIONS;
    tilewright_context* context = nullptr;
    ASSERT_EQ(tilewright_open(&options, &context), TILEWRIGHT_OK) << tilewright_last_error();
    tilewright_problem problem = TILEWRIGHT_INIT_PROBLEM;
    ASSERT_EQ(tilewright_parse_problem(to_text(call.problem).c_str(), &problem), TILEWRIGHT_OK);
    tilewright_backward_tensors tensors = TILEWRIGHT_INIT_BACKWARD_TENSORS;
    const BackwardTensors t = call.backward_tensors();
    const tilewright_forward_tensors forward = c_tensors(t.forward);
    tensors.forward = &forward, tensors.out_gradient = c_tensor(t.out_gradient), tensors.lse_gradient = t.lse_gradient;
    tensors.query_gradient = c_tensor(t.query_gradient), tensors.key_gradient = c_tensor(t.key_gradient), tensors.value_gradient = c_tensor(t.value_gradient);
    ASSERT_EQ(tilewright_backward_packed_workspace_bytes(context, &problem, call.query_rows, &tensors.workspace_bytes), TILEWRIGHT_OK) << tilewright_last_error();
    std::vector<char> workspace(static_cast<size_t>(tensors.workspace_bytes));
    tensors.workspace = workspace.data();
    const tilewright_packed_sequences sequences = c_sequences(call.sequences());
    tensors.struct_size = offsetof(tilewright_backward_tensors, bias_gradient);  // as an older caller has it
    EXPECT_EQ(tilewright_backward_packed(context, &problem, &tensors, &sequences, nullptr), TILEWRIGHT_OK) << tilewright_last_error();
    call.expect_gradients("from C");
    tilewright_close(context);
}

}  // namespace
}  // namespace tilewright
