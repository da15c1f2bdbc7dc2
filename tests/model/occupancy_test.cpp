// Resident blocks against answers worked out by hand from the vendors' rules.
#include "model/occupancy.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

struct Case {
    const char* arch;
    int threads, registers;
    int64_t shared_bytes;
    int blocks;
    OccupancyLimit limit;
};

ResourceEstimate resources(int threads, int64_t shared_bytes, int registers) {
    ResourceEstimate result;
    result.threads = threads, result.shared_bytes = shared_bytes, result.registers_held = registers;
    return result;
}

void expect(const Case& c) {
    const Arch* arch = find_arch(c.arch);
    ASSERT_NE(arch, nullptr) << c.arch;
    Occupancy result = occupancy(resources(c.threads, c.shared_bytes, c.registers), *arch);
    std::string label = std::string(c.arch) + " threads " + std::to_string(c.threads) + " registers " + std::to_string(c.registers) + " shared " + std::to_string(c.shared_bytes);
    EXPECT_EQ(result.blocks, c.blocks) << label;
    EXPECT_STREQ(name(result.limit), name(c.limit)) << label;
    int warps = (c.threads + arch->warp_size - 1) / arch->warp_size;
    EXPECT_EQ(result.warps, c.blocks * warps) << label;
}

using enum OccupancyLimit;

TEST(Occupancy, OfNvidiaFollowsWarpsBlocksAndRegistersOfEachScheduler) {
    expect({"sm_80", 256, 32, 0, 8, warps});        // 64 warps
    expect({"sm_80", 32, 16, 0, 32, blocks});
    expect({"sm_80", 256, 40, 0, 6, registers});    // 1280 a warp: 12 warps per scheduler, 48 in all
    expect({"sm_80", 64, 40, 0, 24, registers});    // the three warps that all registers together would still hold have no scheduler
    expect({"sm_80", 256, 65, 0, 3, registers});    // rounded up to 72: 7 per scheduler, 28 in all
    expect({"sm_80", 256, 255, 0, 1, registers});   // 8160 rounded up to 8192: 2 per scheduler
    expect({"sm_80", 288, 255, 0, 0, registers});   // 9 warps need 3 on one scheduler
    expect({"sm_89", 256, 32, 0, 6, warps});        // 48 warps
    expect({"sm_90a", 384, 168, 0, 1, registers});  // 3 warps per scheduler
    expect({"sm_90a", 512, 128, 0, 1, registers});
    expect({"sm_90a", 2048, 16, 0, 0, warps});      // more threads than a block may have
}

TEST(Occupancy, OfNvidiaCountsTheReservedSharedMemory) {
    expect({"sm_80", 128, 32, 48 * 1024, 3, shared_memory});    // 49 KiB of 164
    expect({"sm_80", 128, 32, 40 * 1024, 4, shared_memory});    // exactly 41 KiB of 164
    expect({"sm_80", 128, 32, 40 * 1024 + 1, 3, shared_memory});
    expect({"sm_90a", 128, 32, 113 * 1024, 2, shared_memory});  // exactly 114 KiB of 228
    expect({"sm_90a", 128, 32, 227 * 1024, 1, shared_memory});
    expect({"sm_90a", 128, 32, 227 * 1024 + 1, 0, shared_memory});
    expect({"sm_89", 128, 32, 99 * 1024 + 1, 0, shared_memory});
}

TEST(Occupancy, OfACompiledKernelAddsItsStaticSharedMemory) {
    KernelSource source;
    source.threads = 128, source.shared_bytes = 112 * 1024;
    Resources compiled;
    compiled.registers = 32, compiled.shared_bytes = 1024;
    EXPECT_EQ(occupancy(source, compiled, *find_arch("sm_90a")).blocks, 2);
    compiled.shared_bytes = 1025;
    EXPECT_EQ(occupancy(source, compiled, *find_arch("sm_90a")).blocks, 1);
    source.shared_bytes = 0, compiled.registers = 168;
    EXPECT_EQ(occupancy(source, compiled, *find_arch("sm_90a")).blocks, 3);
}

TEST(Occupancy, OfCdnaFollowsWavesPerSimdAndLdsBlocks) {
    expect({"gfx942", 256, 128, 0, 4, registers});               // 4 waves per SIMD
    expect({"gfx942", 256, 129, 0, 3, registers});               // 136: 3
    expect({"gfx942", 256, 250, 32 * 1024, 2, registers});       // 2 waves per SIMD, and 2 of LDS: registers come first
    expect({"gfx942", 256, 96, 32 * 1024, 2, shared_memory});
    expect({"gfx942", 256, 64, 21 * 1024 + 512, 2, shared_memory});
    expect({"gfx90a", 64, 32, 0, 32, warps});                    // single waves are not counted as work groups
    expect({"gfx90a", 128, 32, 0, 16, warps});
    expect({"gfx950", 256, 64, 40000, 4, shared_memory});        // 32 blocks of 1280 bytes are 40960 of 163840
    expect({"gfx950", 256, 64, 40961, 3, shared_memory});
}

TEST(Occupancy, OfRdnaIsThatOfAWorkGroupProcessor) {
    expect({"gfx1100", 256, 251, 64 * 1024, 2, registers});      // 264: 5 waves per SIMD, 20 in all
    expect({"gfx1100", 128, 200, 32 * 1024, 4, shared_memory});  // 216: 7 waves per SIMD would be 7 blocks
    expect({"gfx1201", 128, 212, 16 * 1024, 7, registers});
    expect({"gfx1100", 64, 24, 0, 32, warps});
    expect({"gfx1201", 128, 32, 1025, 16, warps});               // 64 waves; 64 blocks of 2048 bytes would fit
    expect({"gfx1100", 128, 32, 64 * 1024 + 1, 0, shared_memory});
}

TEST(Occupancy, OfTheProcessorIsOneBlockACoreWhoseScratchFitsItsCache) {
    const Arch& cpu = *find_arch("cpu");
    EXPECT_EQ(occupancy(resources(1, cpu.l2_bytes, 0), cpu).blocks, 1);
    EXPECT_EQ(occupancy(resources(1, cpu.l2_bytes + 1, 0), cpu).blocks, 0);
}

TEST(Occupancy, OfABlockThatDoesNotFitIsExplainedWithValueAndLimit) {
    Status status = fits(resources(128, 300000, 32), *find_arch("sm_90a"));
    EXPECT_EQ(status.code(), StatusCode::unsupported);
    EXPECT_EQ(status.message(), "shared memory in bytes is 300000; sm_90a allows 232448 per block");
    EXPECT_NE(fits(resources(1024, 0, 255), *find_arch("sm_80")).message().find("65536"), std::string::npos);
    EXPECT_NE(fits(resources(2048, 0, 16), *find_arch("gfx942")).message().find("1024"), std::string::npos);
    EXPECT_TRUE(fits(resources(128, 1000, 32), *find_arch("sm_90a")).ok());
}

}  // namespace
}  // namespace tilewright
