// Decoding under NVIDIA's arch headers, on the emulated multiprocessor: ragged sequences, dense and in pages, whole and in parts, everything unused NaN.
#include "decode.h"
#include "runtime/decode_call.h"

namespace tilewright::emulated {

std::vector<DecodeKernel> sm80_decode_kernels();
std::vector<DecodeKernel> sm90_decode_kernels();

namespace {

void expect_right_in_any_number_of_parts(const std::vector<DecodeKernel>& kernels) {
    for (const DecodeKernel& kernel : kernels) {
        int order = 0;
        const auto longest = static_cast<int32_t>(parse_problem(kernel.problem)->seq_kv);
        for (int64_t page : kernel.paged ? std::vector<int64_t>{16, 64} : std::vector<int64_t>{0})
            for (int units : {1, 2, 5, 9}) expect_right(kernel, DecodeCall(kernel.problem, {longest, 0, 5, 90, 64, 1}, page, units == 5), units, order++);
    }
}
TEST(NvidiaDecode, IsRightForRaggedSequencesInAnyNumberOfPartsOnSm80) { expect_right_in_any_number_of_parts(sm80_decode_kernels()); }
TEST(NvidiaDecode, IsRightForRaggedSequencesInAnyNumberOfPartsOnSm90) { expect_right_in_any_number_of_parts(sm90_decode_kernels()); }

}  // namespace
}  // namespace tilewright::emulated
