// Decoding on a GPU: the same calls as on the CPU, in the device's memory.
#include "runtime/decode_call.h"

#include <gmock/gmock.h>

#include <deque>

namespace tilewright {
namespace {

// Opens "nvidia:0" once; nothing where there is none.
Attention* gpu() {
    static Result<Attention> opened = [] {
        AttentionOptions options;
        options.device = "nvidia:0";
        options.database.use_user = options.database.use_system = false;
        return Attention::open(options);
    }();
    return opened.ok() ? &*opened : nullptr;
}

// A call whose tensors are copied to the device, all else of its memory NaN.
class OnDevice {
public:
    OnDevice(Attention& attention, DecodeCall& call) : attention_(attention), call_(call), tensors_(call.tensors()) {
        const Problem& p = call.problem;
        tensors_.query.data = copy(call.query.data(), call.query.size()), tensors_.key.data = copy(call.key.data(), call.key.size());
        tensors_.value.data = copy(call.value.data(), call.value.size());
        tensors_.out.data = copy(call.out.data(), call.out.size());
        tensors_.lse = static_cast<float*>(copy(call.lse.data(), call.lse.size() * 4));
        tensors_.lengths = static_cast<const int32_t*>(copy(call.lengths.data(), call.lengths.size() * 4));
        if (tensors_.block_table) tensors_.block_table = static_cast<const int32_t*>(copy(call.table.data(), call.table.size() * 4));
        if (p.alibi) tensors_.alibi_slope = static_cast<const float*>(copy(call.slope.data(), call.slope.size() * 4));
        if (p.sink) tensors_.sink = static_cast<const float*>(copy(call.sink.data(), call.sink.size() * 4));
    }
    ~OnDevice() {
        for (void* address : memory_) EXPECT_TRUE(attention_.free(address).ok());
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

    // Runs over outputs of NaN and brings them back. The workspace is zero for the first run of a number of splits and used again as it is.
    Status run(int splits) {
        TILEWRIGHT_ASSIGN_OR_RETURN(int64_t bytes, attention_.decode_workspace_bytes(call_.problem, splits));
        if (splits != tensors_.splits || !tensors_.workspace) {
            std::vector<char> zeros(static_cast<size_t>(bytes));
            tensors_.workspace = bytes ? copy(zeros.data(), zeros.size()) : nullptr, tensors_.workspace_bytes = bytes, tensors_.splits = splits;
        }
        std::fill(call_.out.begin(), call_.out.end(), 0xff), std::fill(call_.lse.begin(), call_.lse.end(), NAN);
        TILEWRIGHT_RETURN_IF_ERROR(attention_.copy_to_device(tensors_.out.data, call_.out.data(), static_cast<int64_t>(call_.out.size())));
        TILEWRIGHT_RETURN_IF_ERROR(attention_.decode(call_.problem, tensors_));
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
    DecodeCall& call_;
    DecodeTensors tensors_;
    std::deque<void*> memory_;
};

void expect_right(DecodeCall call, std::initializer_list<int> splits) {
    Attention* attention = gpu();
    OnDevice device(*attention, call);
    for (int count : splits) {
        std::string what = to_text(call.problem) + " page_size " + std::to_string(call.page_size) + " splits " + std::to_string(count);
        for (int run = 0; run < 2; ++run) {
            Status status = device.run(count);
            ASSERT_TRUE(status.ok()) << what << ": " << status.message();
            call.expect_right(what, true);
        }
    }
}

TEST(DecodeOnDevice, IsRightForLengthsOfAllKindsDenseAndInPages) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    std::vector<int32_t> lengths{1000, 0, 5, 333, 64, 1, 0, 129};
    for (int64_t page : {0, 16, 64, 256}) expect_right(DecodeCall("decode:hq8,hkv2,sq1,skv1000,d128,bf16,causal", lengths, page, page == 64), {0, 1, 3, 7, 100});
    for (int64_t page : {0, 16}) expect_right(DecodeCall("decode:hq8,hkv2,sq1,skv1000,d64,fp32", lengths, page), {1, 7});
    expect_right(DecodeCall("decode:hq8,hkv2,sq1,skv0,d128,bf16", {0, 0}), {0, 1});
}

TEST(DecodeOnDevice, KnowsManyRowsSinksSoftcapAlibiAndOddHeadDims) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    for (int64_t page : {0, 32}) {
        expect_right(DecodeCall("decode:hq32,hkv2,sq6,skv700,d64,bf16", {700, 0, 90, 101, 2}, page), {0, 1, 9});
        expect_right(DecodeCall("decode:hq4,hkv1,sq3,skv700,d40,dv24,bf16,sink,softcap,alibi", {700, 0, 90, 101, 2}, page), {1, 9});
        expect_right(DecodeCall("decode:hq4,hkv1,sq1,skv700,d37,dv21,bf16,sink", {700, 0, 90, 101, 2}, page), {1, 9});
    }
}

TEST(DecodeOnDevice, GivesTheSameBitsOnEveryRun) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    DecodeCall call("decode:hq32,hkv8,sq1,skv20000,d128,bf16", {20000, 0, 5, 3333}, 16);
    OnDevice device(*gpu(), call);
    for (int splits : {0, 1, 200}) {
        ASSERT_TRUE(device.run(splits).ok());
        std::vector<unsigned char> out = call.out;
        for (int run = 0; run < 40; ++run) {
            ASSERT_TRUE(device.run(splits).ok());
            ASSERT_EQ(call.out, out);
        }
    }
}

TEST(DecodeOnDevice, RefusesWhatItCannotDo) {
    if (!gpu()) GTEST_SKIP() << "no NVIDIA device";
    DecodeCall call("decode:hq8,hkv2,sq3,skv100,d128,bf16,causal", {100, 3});
    OnDevice device(*gpu(), call);
    Status status = device.run(1);
    EXPECT_EQ(status.code(), StatusCode::unsupported);
    EXPECT_THAT(status.message(), testing::HasSubstr("causal for a single query alone"));
}

}  // namespace
}  // namespace tilewright
