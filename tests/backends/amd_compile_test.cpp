// Compiling for AMD without a device, and reading the result: against llvm-readelf and the compiler's own remarks.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "amd_test_kernels.h"
#include "backends/amd/code_object.h"
#include "backends/amd/inspect.h"

namespace tilewright::amd {
namespace {

using testing::HasSubstr;

class AmdCompile : public testing::Test {
protected:
    void SetUp() override {
        if (!test_compiler().ok()) GTEST_SKIP() << test_compiler().status().message();
    }
};

TEST_F(AmdCompile, EveryArchitectureThatTheCompilerKnows) {
    for (const char* arch : {"gfx90a", "gfx942", "gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201"}) {
        CodeObject object = compile_for_test(tiny_kernel(), arch);
        auto parsed = read_code_object(object.bytes);
        ASSERT_TRUE(parsed.ok()) << arch << ": " << parsed.status().message();
        EXPECT_EQ(parsed->arch, arch);
        ASSERT_EQ(parsed->kernels.size(), 1u);
        EXPECT_EQ(parsed->kernels[0].name, "tiny");
        EXPECT_EQ(parsed->kernels[0].symbol, "tiny.kd");
        EXPECT_EQ(parsed->kernels[0].max_threads, 128);
        EXPECT_EQ(parsed->kernels[0].wave_size, find_arch(arch)->warp_size);
    }
}

TEST_F(AmdCompile, ReportsTheArgumentLayout) {
    auto object = compile_for_test(tiny_kernel(), "gfx942");
    auto parsed = read_code_object(object.bytes);
    ASSERT_TRUE(parsed.ok());
    const KernelCode& kernel = parsed->kernels[0];
    ASSERT_EQ(kernel.arguments.size(), 2u);
    EXPECT_EQ(kernel.arguments[0].offset, 0);
    EXPECT_EQ(kernel.arguments[0].size, 24);
    EXPECT_EQ(kernel.arguments[0].kind, "by_value");
    EXPECT_EQ(kernel.arguments[1].offset, 24);
    EXPECT_EQ(kernel.arguments[1].size, 4);
    EXPECT_EQ(kernel.argument_bytes, 28);
    EXPECT_EQ(kernel.argument_alignment, 8);
}

TEST_F(AmdCompile, ResourcesAgreeWithReadelfAndTheRemarks) {
    for (const char* arch : {"gfx90a", "gfx942", "gfx1100", "gfx1201"})
        for (const KernelSource& source : {tiny_kernel(), spilling_kernel()}) {
            SCOPED_TRACE(source.entry + " for " + arch);
            CodeObject object = compile_for_test(source, arch);
            auto resources = inspect(object);
            ASSERT_TRUE(resources.ok()) << resources.status().message();
            EXPECT_EQ(resources->shared_bytes, source.entry == "tiny" ? 2560 : 0);
            EXPECT_EQ(resources->local_bytes > 0, resources->vector_spills > 0);
            std::string notes = run_tool("llvm-readelf-19", {"--notes"}, object);
            if (notes.empty()) GTEST_SKIP() << "llvm-readelf-19 is not installed";
            EXPECT_EQ(resources->registers, number_after(notes, ".vgpr_count:"));
            EXPECT_EQ(resources->accumulation_registers, std::max<int64_t>(0, number_after(notes, ".agpr_count:")));  // RDNA has none
            EXPECT_EQ(resources->scalar_registers, number_after(notes, ".sgpr_count:"));
            EXPECT_EQ(resources->shared_bytes, number_after(notes, ".group_segment_fixed_size:"));
            EXPECT_EQ(resources->local_bytes, number_after(notes, ".private_segment_fixed_size:"));
            EXPECT_EQ(resources->vector_spills, number_after(notes, ".vgpr_spill_count:"));
            EXPECT_EQ(resources->scalar_spills, number_after(notes, ".sgpr_spill_count:"));
            EXPECT_EQ(resources->warp_size, number_after(notes, ".wavefront_size:"));
            EXPECT_EQ(resources->local_bytes, number_after(object.log, "ScratchSize [bytes/lane]: "));
            EXPECT_EQ(resources->vector_spills, number_after(object.log, "VGPRs Spill: "));
            EXPECT_EQ(resources->scalar_spills, number_after(object.log, "SGPRs Spill: "));
            EXPECT_EQ(resources->shared_bytes, number_after(object.log, "LDS Size [bytes/block]: "));
            EXPECT_EQ(resources->scalar_registers, number_after(object.log, " SGPRs: "));
        }
}

TEST_F(AmdCompile, ASpillingKernelIsSeenToSpill) {
    auto resources = inspect(compile_for_test(spilling_kernel(), "gfx942"));
    ASSERT_TRUE(resources.ok());
    EXPECT_GT(resources->vector_spills, 0);
    EXPECT_EQ(resources->spill_bytes, 4 * resources->vector_spills);
}

TEST_F(AmdCompile, TheSameTextGivesTheSameBytes) {
    EXPECT_EQ(compile_for_test(tiny_kernel(), "gfx942").bytes, compile_for_test(tiny_kernel(), "gfx942").bytes);
}

TEST_F(AmdCompile, ParallelCallsDoNotDisturbEachOther) {
    std::string alone = compile_for_test(tiny_kernel(), "gfx1100").bytes;
    std::vector<std::string> results(6);
    std::vector<std::thread> threads;
    for (std::string& result : results) threads.emplace_back([&] { result = compile_for_test(tiny_kernel(), "gfx1100").bytes; });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& result : results) EXPECT_EQ(result, alone);
}

TEST_F(AmdCompile, AnErrorNamesItsPlaceAndKeepsTheLog) {
    KernelSource source{.text = "#line 7 \"kernels/arch/some.h\"\nint x = y;\n", .entry = "wrong"};
    auto object = compile(*test_compiler(), source, *find_arch("gfx942"));
    ASSERT_FALSE(object.ok());
    EXPECT_EQ(object.status().code(), StatusCode::compile);
    EXPECT_THAT(object.status().message(), HasSubstr("kernels/arch/some.h:7"));
    EXPECT_THAT(object.status().message(), HasSubstr("for gfx942"));
    EXPECT_THAT(object.status().message(), HasSubstr("1 error generated"));
}

TEST_F(AmdCompile, AnArchitectureThatTheCompilerDoesNotKnowIsNamedInOneSentence) {
    Arch arch = *find_arch("gfx942");
    arch.name = "gfx9999";
    auto object = compile(*test_compiler(), tiny_kernel(), arch);
    ASSERT_FALSE(object.ok());
    EXPECT_EQ(object.status().code(), StatusCode::unavailable);
    EXPECT_THAT(object.status().message(), HasSubstr("does not know gfx9999; set TILEWRIGHT_AMD_COMPILER"));
    EXPECT_EQ(object.status().message().find('\n'), std::string::npos);
}

TEST_F(AmdCompile, NothingIsLeftInTheTemporaryDirectory) {
    auto scratch = ScratchDirectory::create();
    ASSERT_TRUE(scratch.ok());
    const char* before = getenv("TMPDIR");
    std::string saved = before ? before : "/tmp";
    setenv("TMPDIR", scratch->path().c_str(), 1);
    compile_for_test(tiny_kernel(), "gfx942");
    (void)compile(*test_compiler(), {.text = "error", .entry = "wrong"}, *find_arch("gfx942"));
    setenv("TMPDIR", saved.c_str(), 1);
    EXPECT_TRUE(std::filesystem::is_empty(scratch->path()));
}

TEST(AmdCompiler, AbsenceIsOneClearSentence) {
    setenv("TILEWRIGHT_AMD_COMPILER", "/nonexistent/clang++", 1);
    auto chosen = find_compiler();
    setenv("TILEWRIGHT_AMD_COMPILER", "hiprtc", 1);
    setenv("TILEWRIGHT_HIPRTC_LIBRARY", "/nonexistent/libhiprtc.so", 1);
    auto insisted = find_compiler();
    unsetenv("TILEWRIGHT_AMD_COMPILER");
    unsetenv("TILEWRIGHT_HIPRTC_LIBRARY");
    ASSERT_FALSE(chosen.ok());
    EXPECT_EQ(chosen.status().code(), StatusCode::unavailable);
    EXPECT_THAT(chosen.status().message(), HasSubstr("/nonexistent/clang++ is not there"));
    ASSERT_FALSE(insisted.ok());
    EXPECT_EQ(insisted.status().code(), StatusCode::unavailable);
}

TEST_F(AmdCompile, DamagedObjectsAreRefusedAndNeverOverread) {
    std::string whole = compile_for_test(tiny_kernel(), "gfx942").bytes;
    for (size_t size = 0; size < whole.size(); size += 37) (void)read_code_object(std::string(whole, 0, size));
    for (size_t at = 0; at < whole.size(); at += 3) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
        (void)inspect({"gfx942", damaged, ""});
    }
    EXPECT_THAT(read_code_object("").status().message(), HasSubstr("does not begin as an ELF file"));
    EXPECT_THAT(read_code_object(std::string(whole, 0, whole.size() / 2)).status().message(), HasSubstr("section table is cut off"));
    std::string host = whole;
    host[18] = 62, host[19] = 0;
    EXPECT_THAT(read_code_object(host).status().message(), HasSubstr("its machine is 62"));
}

TEST_F(AmdCompile, FindsAnArchitectureInABundle) {
    auto little = [](uint64_t value) { return std::string(reinterpret_cast<const char*>(&value), 8); };
    std::string host_id = "host-x86_64-unknown-linux--", id = "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", code = "code";
    uint64_t head = 24 + 8 + 2 * 24 + host_id.size() + id.size();
    std::string bundle = "__CLANG_OFFLOAD_BUNDLE__" + little(2) + little(head) + little(0) + little(host_id.size()) + host_id + little(head) +
                         little(code.size()) + little(id.size()) + id + code;
    auto found = unbundle(bundle, "gfx90a");
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(*found, code);
    EXPECT_EQ(unbundle(bundle, "gfx942").status().code(), StatusCode::not_found);
    EXPECT_EQ(unbundle(bundle.substr(0, head - 3), "gfx90a").status().code(), StatusCode::invalid_argument);
    EXPECT_EQ(*unbundle("anything else", "gfx90a"), "anything else");
}

}  // namespace
}  // namespace tilewright::amd
