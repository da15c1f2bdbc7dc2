// Packed sequences on a GPU: the same calls as on the CPU, in the device's memory, for both kinds of kernel.
#include "runtime/packed_call.h"
#include "runtime/opened.h"

#include <deque>

namespace tilewright {
namespace {

// Copies the call's tensors to the device, runs it over outputs of NaN and brings these back.
class OnDevice {
public:
    OnDevice(Attention& attention, PackedCall& call) : attention_(attention), call_(call), tensors_(call.tensors()), sequences_(call.sequences()) {
        const Problem& p = call.problem;
        tensors_.query.data = copy(call.query.data(), call.query.size()), tensors_.key.data = copy(call.key.data(), call.key.size());
        tensors_.value.data = copy(call.value.data(), call.value.size()), tensors_.out.data = copy(call.out.data(), call.out.size());
        tensors_.lse = static_cast<float*>(copy(call.lse.data(), call.lse.size() * 4));
        const size_t bytes = call.query_starts.size() * (call.wide ? 8 : 4);
        sequences_.query_starts = copy(sequences_.query_starts, bytes), sequences_.key_starts = copy(sequences_.key_starts, bytes);
        if (p.alibi) tensors_.alibi_slope = static_cast<const float*>(copy(call.slope.data(), call.slope.size() * 4));
        if (p.sink) tensors_.sink = static_cast<const float*>(copy(call.sink.data(), call.sink.size() * 4));
    }
    ~OnDevice() {
        for (void* address : memory_) EXPECT_TRUE(attention_.free(address).ok());
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

    Status run() {
        std::fill(call_.out.begin(), call_.out.end(), 0xff), std::fill(call_.lse.begin(), call_.lse.end(), NAN);
        TILEWRIGHT_RETURN_IF_ERROR(attention_.copy_to_device(tensors_.out.data, call_.out.data(), static_cast<int64_t>(call_.out.size())));
        TILEWRIGHT_RETURN_IF_ERROR(attention_.copy_to_device(tensors_.lse, call_.lse.data(), static_cast<int64_t>(call_.lse.size() * 4)));
        TILEWRIGHT_RETURN_IF_ERROR(attention_.forward_packed(call_.problem, tensors_, sequences_));
        TILEWRIGHT_RETURN_IF_ERROR(attention_.copy_to_host(call_.out.data(), tensors_.out.data, static_cast<int64_t>(call_.out.size())));
        return attention_.copy_to_host(call_.lse.data(), tensors_.lse, static_cast<int64_t>(call_.lse.size() * 4));
    }

private:
    void* copy(const void* from, size_t bytes) {
        Result<void*> address = attention_.allocate(static_cast<int64_t>(bytes));
        EXPECT_TRUE(address.ok() && attention_.copy_to_device(*address, from, static_cast<int64_t>(bytes)).ok());
        memory_.push_back(*address);
        return *address;
    }
    Attention& attention_;
    PackedCall& call_;
    ForwardTensors tensors_;
    PackedSequences sequences_;
    std::deque<void*> memory_;
};

void expect_right(PackedCall call, int poisoned = -1) {
    const std::string what = to_text(call.problem) + (call.wide ? " int64" : " int32");
    OnDevice device(*gpu(), call);
    Status status = device.run();
    ASSERT_TRUE(status.ok()) << what << ": " << status.message();
    call.expect_right(what, poisoned);
    const std::vector<unsigned char> out = call.out;
    ASSERT_TRUE(device.run().ok());
    EXPECT_EQ(call.out, out) << what << ": another run gives other bits";
}

// By the copy engine (aligned bf16 on sm_90a), by warps (odd head dims), and float.
constexpr const char* problems[] = {"forward:hq4,hkv2,d128,bf16",        "forward:hq4,hkv1,d64,bf16,causal", "forward:hq2,hkv1,d80,dv40,bf16,window9:4,topleft",
                                    "forward:hq4,hkv2,d40,fp32,causal", "forward:hq2,hkv2,d37,dv21,bf16,sink", "forward:hq4,hkv2,d64,bf16,causal,softcap,alibi,sink"};

TEST(PackedOnDevice, IsRightForManyRandomLengthsUnderEveryMask) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    std::mt19937 random(5);
    for (const char* text : problems)
        for (unsigned seed = 1; seed <= 4; ++seed) {
            const size_t sequences = 1 + random() % 9;
            expect_right(PackedCall(text, random_lengths(random, sequences, 200), random_lengths(random, sequences, 300), seed));
        }
}

TEST(PackedOnDevice, TakesEmptySequencesAnywhere) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    for (const char* text : problems) {
        expect_right(PackedCall(text, {0, 0, 5, 0, 0, 200, 0}, {4, 0, 5, 9, 0, 0, 0}));
        expect_right(PackedCall(text, {300}, {0}));
    }
}

TEST(PackedOnDevice, NanInOneSequenceReachesNoOther) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    for (const char* text : problems)
        for (int poisoned : {0, 1, 2}) expect_right(PackedCall(text, {170, 33, 290}, {181, 40, 200}, 2, poisoned), poisoned);
}

// Host code cannot look at them here: nothing outside the tensors may be touched, whatever they say.
TEST(PackedOnDevice, StartsOutsideTheRowsTouchNothingElse) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    for (const char* text : problems) {
        PackedCall call(text, {70, 33, 90}, {81, 40, 100}, 2);
        call.narrow_query_starts = {-5, 1 << 30, 20, -(1 << 30)}, call.narrow_key_starts = {1 << 30, 7, -3, 1 << 30};
        OnDevice device(*gpu(), call);
        ASSERT_TRUE(device.run().ok());
        ASSERT_TRUE(gpu()->synchronize().ok());
    }
    PackedCall longer("forward:hq4,hkv2,d64,bf16,causal", {70, 33, 290}, {81, 40, 300}, 2);
    longer.problem.seq_q = 16, longer.problem.seq_kv = 16;  // hints that are too small
    expect_right(std::move(longer));
}

}  // namespace
}  // namespace tilewright
