// Finding the main loop of a disassembly; what it costs, from LLVM and from counting, where a compiler is.
#include "backends/amd/main_loop.h"

#include <gmock/gmock.h>

namespace tilewright::amd {
namespace {

// A loop from 0x1008 to 0x1024 with two matrix instructions, a jump around masks in it, and one behind a test for an empty mask.
constexpr const char* disassembly = R"(
k:	file format elf64-amdgpu

0000000000001000 <k>:
	s_mov_b32 s0, 0                                            // 000000001000: BE800080
	s_mov_b32 s1, 0                                            // 000000001004: BE810080
	v_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15]// 000000001008: D3E00000
	s_cbranch_vccz 2                                           // 00000000100C: BF860002 <k+0x18>
	v_cndmask_b32_e32 v0, v1, v2, vcc                          // 000000001010: 00000000
	v_cndmask_b32_e32 v3, v1, v2, vcc                          // 000000001014: 00000000
	s_cbranch_execz 1                                          // 000000001018: BF880001 <k+0x20>
	global_load_dword v1, v[2:3], off                          // 00000000101C: 00000000
	v_mfma_f32_16x16x16_f16 v[0:3], v[16:17], v[18:19], v[0:3] // 000000001020: D3E00000
	s_branch 65529                                             // 000000001024: BF82FFF9 <k+0x8>
	s_cbranch_scc0 65526                                       // 000000001028: BF82FFF6 <k>
	s_endpgm                                                   // 00000000102C: BF810000
)";

TEST(MainLoop, IsTheInnermostWithTheMostMatrixInstructionsWithoutWhatIsJumpedOver) {
    EXPECT_EQ(main_loop_text(disassembly),
              "v_mfma_f32_32x32x8_bf16 v[0:15], v[16:17], v[18:19], v[0:15]\n"
              "global_load_dword v1, v[2:3], off\n"
              "v_mfma_f32_16x16x16_f16 v[0:3], v[16:17], v[18:19], v[0:3]\n");
}

TEST(MainLoop, IsEmptyWithoutMatrixInstructionsOrLoops) {
    EXPECT_EQ(main_loop_text(""), "");
    EXPECT_EQ(main_loop_text("0000000000001000 <k>:\n\ts_nop 0 // 000000001000: BF800000\n\ts_branch 65534 // 000000001004: BF82FFFE <k>\n"), "");
}

}  // namespace
}  // namespace tilewright::amd
