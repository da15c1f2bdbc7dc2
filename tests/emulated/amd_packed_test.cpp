// Packed sequences under the AMD arch headers, on fibers: random lengths, rows that are no sequence's, NaN in a neighbour.
#include "packed.h"
#include "runtime/packed_call.h"

namespace tilewright::emulated {

std::vector<PackedKernel> cdna_packed_kernels();
std::vector<PackedKernel> rdna3_packed_kernels();
std::vector<PackedKernel> rdna4_packed_kernels();

namespace {

std::vector<PackedKernel> all_kernels() {
    std::vector<PackedKernel> all;
    for (auto* list : {cdna_packed_kernels, rdna3_packed_kernels, rdna4_packed_kernels})
        for (const PackedKernel& kernel : list()) all.push_back(kernel);
    return all;
}

TEST(AmdPacked, IsRightForRandomLengths) {
    std::mt19937 random(3);
    for (const PackedKernel& kernel : all_kernels())
        for (unsigned seed = 1; seed <= 3; ++seed)
            expect_right(kernel, PackedCall(kernel.problem, random_lengths(random, 4, 50), random_lengths(random, 4, 60), seed), static_cast<int>(seed - 1));
}
TEST(AmdPacked, NanInOneSequenceReachesNoOther) {
    for (const PackedKernel& kernel : all_kernels()) expect_right(kernel, PackedCall(kernel.problem, {20, 9, 33}, {31, 40, 20}, 2, 1), 0, 1);
}

}  // namespace
}  // namespace tilewright::emulated
