// The public interface on two NVIDIA devices: decoding calls of one thread in turns, and of a thread for each. Skipped where there are not two.
#include <thread>

#include "runtime/decode_on_device.h"

namespace tilewright {
namespace {

const char* const problems[] = {"decode:hq8,hkv2,sq1,skv1000,d128,bf16,causal", "decode:hq8,hkv2,sq16,skv1000,d64,bf16", "decode:hq4,hkv1,sq3,skv1000,d37,dv21,bf16,sink", "decode:hq8,hkv2,sq1,skv1000,d64,fp32"};
const std::vector<int32_t> lengths{1000, 0, 5, 333, 64, 1};

class TwoDevices : public testing::Test {
protected:
    void SetUp() override {
        for (const char* id : {"nvidia:0", "nvidia:1"}) {
            Result<Attention> opened = Attention::open(options_on(id));
            if (!opened.ok()) GTEST_SKIP() << opened.status().message();
            opened_.push_back(*std::move(opened));
        }
    }
    std::deque<Attention> opened_;
};

TEST_F(TwoDevices, OneThreadTurnsFromOneToTheOther) {
    for (const char* text : problems)
        for (int64_t page : {0, 16}) {
            DecodeCall first(text, lengths, page, false, 1), second(text, lengths, page, false, 2);
            OnDevice one(opened_[0], first), other(opened_[1], second);
            ASSERT_TRUE(one.prepare(3).ok() && other.prepare(3).ok());
            ASSERT_TRUE(one.poison().ok() && other.poison().ok());
            for (int i = 0; i < 10; ++i) ASSERT_TRUE(one.launch().ok() && other.launch().ok());
            ASSERT_TRUE(other.fetch().ok() && one.fetch().ok());
            second.expect_right(std::string("nvidia:1 ") + text, true), first.expect_right(std::string("nvidia:0 ") + text, true);
        }
}

TEST_F(TwoDevices, TwoThreadsHaveOneEach) {
    std::vector<std::thread> threads;
    for (size_t on : {0, 1})
        threads.emplace_back([&, on] {
            for (const char* text : problems)
                for (int splits : {0, 1, 7}) {
                    DecodeCall call(text, lengths, 16, false, unsigned(3 + on));
                    OnDevice device(opened_[on], call);
                    for (int i = 0; i < 5; ++i) ASSERT_TRUE(device.run(splits).ok()) << text;
                    call.expect_right("nvidia:" + std::to_string(on) + " " + text, true);
                }
        });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tilewright
