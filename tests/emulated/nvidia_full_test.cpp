// NVIDIA's arch headers on the emulated multiprocessor, in many random orders: forward, packed sequences, decoding and backward.
#include <gtest/gtest.h>

#include <random>

#include "backward_check.h"
#include "cases.h"
#include "decode.h"
#include "packed.h"
#include "runtime/decode_call.h"
#include "runtime/packed_call.h"

namespace tilewright::emulated {

std::vector<EmulatedKernel> sm80_kernels();
std::vector<EmulatedKernel> sm90_kernels();
std::vector<EmulatedKernel> sm90_default_kernels();
std::vector<PackedKernel> sm80_packed_kernels();
std::vector<PackedKernel> sm90_packed_kernels();
std::vector<DecodeKernel> sm80_decode_kernels();
std::vector<DecodeKernel> sm90_decode_kernels();
std::vector<EmulatedBackward> sm80_backward();
std::vector<EmulatedBackward> sm90_backward();

namespace {

template <class Kernel>
std::vector<Kernel> both(std::vector<Kernel> first, const std::vector<Kernel>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}
std::vector<int> orders(int first, int count) {
    std::vector<int> all;
    for (int i = 0; i < count; ++i) all.push_back(first + i);
    return all;
}

TEST(NvidiaInManyOrders, ForwardIsRight) {
    std::mt19937 random(5);
    int order = 100;
    for (const EmulatedKernel& kernel : both(sm80_kernels(), sm90_kernels()))
        for (int i = 0; i < 4; ++i, order += 8) {
            Case c{.name = kernel.name, .batch = 1 + i % 2, .heads_q = 4, .heads_kv = i < 2 ? 2 : 4, .seq_q = 1 + (int)(random() % 420), .seq_kv = (int)(random() % 300), .top_left = i == 3};
            if (kernel.mask == kernel::Mask::window) c.window_left = (int)(random() % 120), c.window_right = (int)(random() % 60);
            if (kernel.rescaled) c.scale_is_given = true, c.scale = -0.25f;
            EXPECT_EQ(check(kernel, c, orders(order, 8)), "") << c.name << " " << c.seq_q << " queries, " << c.seq_kv << " keys";
        }
}
TEST(NvidiaInManyOrders, DefaultsAreRight) {
    int order = 500;
    for (const EmulatedKernel& kernel : sm90_default_kernels()) {
        EXPECT_EQ(check(kernel, {.name = kernel.name, .heads_q = 3, .heads_kv = 3, .seq_q = 530, .seq_kv = 470}, {0, 1, 2, order, order + 1, order + 2}), "") << kernel.name;
        EXPECT_EQ(check(kernel, {.name = kernel.name, .heads_q = 6, .heads_kv = 2, .seq_q = 390, .seq_kv = 120, .odd_keys = {33, 34, 101}}, {0, 1, 2, order + 3}), "") << kernel.name;
        order += 4;
    }
}
TEST(NvidiaInManyOrders, PackedIsRight) {
    std::mt19937 random(7);
    for (const PackedKernel& kernel : both(sm80_packed_kernels(), sm90_packed_kernels()))
        for (unsigned seed = 1; seed <= 12; ++seed)
            expect_right(kernel, PackedCall(kernel.problem, random_lengths(random, 6, 200), random_lengths(random, 6, 180), seed), 200 + (int)seed);
}
TEST(NvidiaInManyOrders, DecodingIsRight) {
    int order = 300;
    for (const DecodeKernel& kernel : both(sm80_decode_kernels(), sm90_decode_kernels()))
        for (int64_t page : kernel.paged ? std::vector<int64_t>{16, 128, 256} : std::vector<int64_t>{0})
            for (int units : {1, 2, 3, 7}) expect_right(kernel, DecodeCall(kernel.problem, {150, 0, 33, 90, 64, 1, 0, 128}, page, units == 3), units, order++);
}
TEST(NvidiaInManyOrders, BackwardIsRight) {
    int order = 400;
    for (const EmulatedBackward& kernels : both(sm80_backward(), sm90_backward()))
        for (const char* sizes : {"hq4,hkv2,sq200,skv270", "hq4,hkv4,sq260,skv130", "hq4,hkv2,sq300,skv40", "b2,hq4,hkv2,sq65,skv260"})
            for (int i = 0; i < 2; ++i) {
                Workload w = make_workload(kernels, sizes);
                expect_right_gradients(kernels, w, kernels.passes(), order++);
            }
}

}  // namespace
}  // namespace tilewright::emulated
