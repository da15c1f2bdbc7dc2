// The decoder against llvm-objdump: every instruction's length, and what kind it is.
#include <sstream>

#include "amd_test_kernels.h"
#include "backends/amd/code_object.h"
#include "backends/amd/instructions.h"

namespace tilewright::amd {
namespace {

// Counts by name, as a person reading the listing would.
InstructionCounts count_listing(const std::string& listing) {
    InstructionCounts counts;
    std::istringstream lines(listing);
    std::vector<std::string> ops;
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with('\t')) ops.push_back(line.substr(1, line.find_first_of(" \t/", 1) - 1));
    while (!ops.empty() && (ops.back() == "s_nop" || ops.back() == "s_code_end")) ops.pop_back();  // padding
    for (const std::string& op : ops) {
        auto begins = [&](const char* text) { return op.rfind(text, 0) == 0; };
        auto holds = [&](const char* text) { return op.find(text) != op.npos; };
        ++counts.total;
        if (begins("v_mfma") || begins("v_smfmac") || begins("v_wmma") || begins("v_swmmac")) ++counts.matrix;
        if (begins("ds_")) holds("permute") || holds("swizzle") ? ++counts.lane_exchange : ++counts.lds;
        if (begins("global_") || begins("flat_") || begins("buffer_")) {
            counts.global_load += holds("_load_");
            counts.global_store += holds("_store_") || holds("_atomic_");  // the rest controls caches
        }
        if (begins("scratch_")) ++counts.scratch;
        if (begins("s_load") || begins("s_buffer_load")) ++counts.scalar_load;
        if (begins("v_exp_f32")) ++counts.exponential;
        if (begins("s_wait_") || begins("s_waitcnt")) counts.wait += !holds("depctr") && !holds("idle") && !holds("alu") && !holds("event");
        if (op == "s_barrier" || op == "s_barrier_wait") ++counts.barrier;
    }
    return counts;
}

void expect_equal(const InstructionCounts& ours, const InstructionCounts& listing) {
    EXPECT_EQ(ours.total, listing.total);
    EXPECT_EQ(ours.matrix, listing.matrix);
    EXPECT_EQ(ours.lds, listing.lds);
    EXPECT_EQ(ours.lane_exchange, listing.lane_exchange);
    EXPECT_EQ(ours.global_load, listing.global_load);
    EXPECT_EQ(ours.global_store, listing.global_store);
    EXPECT_EQ(ours.scratch, listing.scratch);
    EXPECT_EQ(ours.scalar_load, listing.scalar_load);
    EXPECT_EQ(ours.exponential, listing.exponential);
    EXPECT_EQ(ours.wait, listing.wait);
    EXPECT_EQ(ours.barrier, listing.barrier);
}

TEST(AmdInstructions, AgreeWithObjdumpOnCompiledKernels) {
    if (!test_compiler().ok()) GTEST_SKIP() << test_compiler().status().message();
    if (find_program("llvm-objdump-19").empty()) GTEST_SKIP() << "llvm-objdump-19 is not installed";
    for (const char* arch : {"gfx90a", "gfx942", "gfx1100", "gfx1151", "gfx1201"})
        for (const KernelSource& source : {tiny_kernel(), spilling_kernel()}) {
            SCOPED_TRACE(source.entry + " for " + arch);
            CodeObject object = compile_for_test(source, arch);
            auto parsed = read_code_object(object.bytes);
            ASSERT_TRUE(parsed.ok()) << parsed.status().message();
            auto counts = count_instructions(parsed->kernels[0].code, find_arch(arch)->family);
            ASSERT_TRUE(counts.ok()) << counts.status().message();
            expect_equal(*counts, count_listing(run_tool("llvm-objdump-19", {"-d", "--no-show-raw-insn"}, object)));
            EXPECT_GT(counts->global_load, 0);
            EXPECT_EQ(counts->barrier, source.threads > 64);  // a block of one wave needs none
        }
}

// As clang 22 encodes them; clang 19 does not know gfx950.
TEST(AmdInstructions, KnowTheMatrixInstructionsOfGfx950) {
    const uint32_t words[] = {0xd3b50000, 0x04021104,   // v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[0:3]
                              0xd3d40000, 0x04021104,   // v_mfma_f32_16x16x32_f16, the same registers
                              0xd3b70000, 0x04022910,   // v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[20:23], v[0:15]
                              0xd3d50000, 0x04022910};  // v_mfma_f32_32x32x16_f16, the same registers
    auto counts = count_instructions(std::string_view(reinterpret_cast<const char*>(words), sizeof words), Family::cdna);
    ASSERT_TRUE(counts.ok()) << counts.status().message();
    EXPECT_EQ(counts->matrix, 4);
    EXPECT_EQ(counts->total, 4);
}

TEST(AmdInstructions, RefuseWhatIsNotCode) {
    std::string nonsense = "\xff\xff\xff\xff";
    auto counts = count_instructions(nonsense, Family::cdna);
    ASSERT_FALSE(counts.ok());
    EXPECT_NE(counts.status().message().find("ffffffff at byte 0"), std::string::npos);
    EXPECT_FALSE(count_instructions("", Family::sm90).ok());
    EXPECT_TRUE(count_instructions("", Family::rdna4).ok());
}

}  // namespace
}  // namespace tilewright::amd
