// Decoding under the AMD arch headers, on fibers: ragged sequences, dense and in pages, whole and in parts, everything unused NaN.
#include "decode.h"
#include "runtime/decode_call.h"

namespace tilewright::emulated {

std::vector<DecodeKernel> cdna_decode_kernels();
std::vector<DecodeKernel> rdna3_decode_kernels();
std::vector<DecodeKernel> rdna4_decode_kernels();

namespace {

TEST(AmdDecode, IsRightForRaggedSequencesInAnyNumberOfParts) {
    for (auto* list : {cdna_decode_kernels, rdna3_decode_kernels, rdna4_decode_kernels})
        for (const DecodeKernel& kernel : list()) {
            int order = 0;
            const auto longest = static_cast<int32_t>(parse_problem(kernel.problem)->seq_kv);
            for (int units : {1, 2, 5, 9}) expect_right(kernel, DecodeCall(kernel.problem, {longest, 0, 5, 90, 64, 1}, kernel.paged ? 16 : 0, units == 5), units, order++ % 3);
        }
}

}  // namespace
}  // namespace tilewright::emulated
