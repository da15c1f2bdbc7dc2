// NVRTC and the cubin reader, on small kernels with known contents. No device is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <thread>

#include "backends/nvidia/cubin.h"
#include "backends/nvidia/nvrtc.h"
#include "backends/nvidia/nvrtc_library.h"
#include "core/process.h"
#include "core/scratch_directory.h"

namespace tilewright::nvidia {
namespace {

using testing::HasSubstr;

// Two mma.sync, one ldmatrix, one cp.async, 256 bytes of shared memory; two parameters of 8 and 4 bytes.
const char* known_text = R"(
extern "C" __global__ void __launch_bounds__(128) known(float* p, int n) {
    __shared__ float shared[64];
    unsigned at = (unsigned)__cvta_generic_to_shared(shared + threadIdx.x % 4 * 4), a, b, c, d;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(p) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
    float x0 = n, x1 = 0, x2 = 0, x3 = 0;
    for (int i = 0; i < 2; ++i)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%4,%5}, {%0,%1,%2,%3};"
                     : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3) : "r"(a), "r"(b), "r"(c), "r"(d));
    p[threadIdx.x] = x0 + x1 + x2 + x3;
})";

// Too many live values for its registers.
const char* spilling_text = R"(
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* p) {
    float x[80];
    for (int i = 0; i < 80; ++i) x[i] = p[i * 1024 + threadIdx.x];
    for (int j = 0; j < 80; ++j)
        for (int i = 0; i < 80; ++i) x[i] = x[i] * x[(i + 7) % 80] + 1;
    for (int i = 0; i < 80; ++i) p[i * 1024 + threadIdx.x] = x[i];
})";

class NvidiaCompile : public testing::Test {
protected:
    void SetUp() override {
        if (auto info = nvrtc_info(); !info.ok()) GTEST_SKIP() << info.status().message();
    }
    static CubinKernel kernel_of(const std::string& text, const std::string& arch) {
        auto object = nvrtc_compile(text, arch);
        EXPECT_TRUE(object.ok()) << object.status().message();
        auto kernels = object.ok() ? read_cubin(object->bytes) : Result<std::vector<CubinKernel>>(object.status());
        EXPECT_TRUE(kernels.ok()) << kernels.status().message();
        return kernels.ok() ? kernels->front() : CubinKernel();
    }
    static std::map<std::string, int> counts(const CubinKernel& kernel) { return {kernel.instructions.begin(), kernel.instructions.end()}; }
};

TEST_F(NvidiaCompile, ReadsWhatIsKnownOfAKernelOnEveryArchitecture) {
    for (const char* arch : {"sm_80", "sm_89", "sm_90a"}) {
        SCOPED_TRACE(arch);
        CubinKernel kernel = kernel_of(known_text, arch);
        EXPECT_EQ(kernel.name, "known");
        EXPECT_EQ(kernel.shared_bytes, 256);
        EXPECT_EQ(kernel.local_bytes, 0);
        EXPECT_EQ(kernel.parameter_bytes, 12);
        EXPECT_EQ(counts(kernel)["hmma"], 2);
        EXPECT_EQ(counts(kernel)["ldsm"], 1);
        EXPECT_EQ(counts(kernel)["ldgsts"], 1);
        EXPECT_EQ(counts(kernel)["stg"], 1);
        EXPECT_EQ(counts(kernel).count("hgmma"), 0u);
    }
}

TEST_F(NvidiaCompile, RegistersAreThoseOfTheAssemblersLog) {
    for (const char* arch : {"sm_80", "sm_90a"}) {
        auto object = nvrtc_compile(known_text, arch);
        ASSERT_TRUE(object.ok());
        EXPECT_THAT(object->log, HasSubstr("Used " + std::to_string(kernel_of(known_text, arch).registers) + " registers"));
    }
}

TEST_F(NvidiaCompile, CountsAHopperProduct) {
    CubinKernel kernel = kernel_of(R"(
extern "C" __global__ void __launch_bounds__(128, 1) product(float* p, unsigned long long a) {
    float d[4] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %4, 1, 1, 1, 0, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    p[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
})", "sm_90a");
    EXPECT_EQ(counts(kernel)["hgmma"], 1);
}

TEST_F(NvidiaCompile, RejectsSpillsAndSaysHowMany) {
    auto object = nvrtc_compile(spilling_text, "sm_80");
    ASSERT_TRUE(object.ok()) << object.status().message();
    Resources resources;
    resources.spill_bytes = spilled_bytes(object->log);
    EXPECT_GT(resources.spill_bytes, 0);
    EXPECT_THAT(reason_to_reject(object->log, resources), HasSubstr(std::to_string(resources.spill_bytes) + " bytes"));
    EXPECT_GT(counts(kernel_of(spilling_text, "sm_80"))["stl"], 0);
}

TEST_F(NvidiaCompile, ACleanKernelIsNotRejected) {
    auto object = nvrtc_compile(known_text, "sm_80");
    ASSERT_TRUE(object.ok());
    Resources resources;
    resources.spill_bytes = spilled_bytes(object->log);
    resources.local_bytes = 0;
    EXPECT_EQ(resources.spill_bytes, 0);
    EXPECT_EQ(reason_to_reject(object->log, resources), "");
}

TEST_F(NvidiaCompile, AnErrorCarriesTheCompilersText) {
    auto object = nvrtc_compile("extern \"C\" __global__ void bad() { undeclared_name = 1; }", "sm_80");
    ASSERT_FALSE(object.ok());
    EXPECT_EQ(object.status().code(), StatusCode::compile);
    EXPECT_THAT(object.status().message(), HasSubstr("undeclared_name"));
    EXPECT_FALSE(nvrtc_compile(known_text, "sm_12345").ok());
    EXPECT_FALSE(nvrtc_compile(known_text, "compute_80").ok());
}

TEST_F(NvidiaCompile, ThreadsCompileAtTheSameTime) {
    std::vector<std::string> bytes(4);
    std::vector<std::thread> threads;
    for (auto& out : bytes)
        threads.emplace_back([&out] {
            if (auto object = nvrtc_compile(known_text, "sm_90a"); object.ok()) out = object->bytes;
        });
    for (auto& thread : threads) thread.join();
    for (auto& out : bytes) EXPECT_TRUE(read_cubin(out).ok());
}

// Kernels of that kind must not be taken for the others where code is kept.
TEST_F(NvidiaCompile, KernelsForRacecheckHaveAFlagOfTheirOwn) {
    const char* flag = "-DTILEWRIGHT_FOR_RACECHECK=1";
    const std::string text = "#ifdef TILEWRIGHT_FOR_RACECHECK\n#error for racecheck\n#endif\nextern \"C\" __global__ void nothing() {}";
    EXPECT_EQ(nvrtc_info()->flags.find(flag), std::string::npos);
    EXPECT_TRUE(nvrtc_compile(text, "sm_90a").ok());
    ASSERT_EQ(setenv("TILEWRIGHT_FOR_RACECHECK", "1", 1), 0);
    EXPECT_THAT(nvrtc_info()->flags, HasSubstr(flag));
    EXPECT_THAT(nvrtc_info()->flags, HasSubstr("--generate-line-info"));  // its reports name the source
    EXPECT_THAT(nvrtc_compile(text, "sm_90a").status().message(), HasSubstr("for racecheck"));
    ASSERT_EQ(unsetenv("TILEWRIGHT_FOR_RACECHECK"), 0);
}

TEST(NvidiaCompilerSearch, LooksInToolkitsBeforePythonPackages) {
    auto scratch = ScratchDirectory::create();
    ASSERT_TRUE(scratch.ok());
    std::string toolkit = scratch->file("toolkit"), python = scratch->file("venv"), packages = python + "/lib/python3.11/site-packages/nvidia/";
    std::vector<std::string> files = {toolkit + "/lib64/libnvrtc.so.12", packages + "cu13/lib/libnvrtc.so.13", packages + "cuda_nvrtc/lib/libnvrtc.so.12"};
    for (const std::string& file : files) {
        std::filesystem::create_directories(std::filesystem::path(file).parent_path());
        ASSERT_TRUE(write_file(file, "").ok());
    }
    setenv("CUDA_HOME", toolkit.c_str(), 1), setenv("VIRTUAL_ENV", python.c_str(), 1);
    std::vector<std::string> candidates = nvrtc_candidates();
    setenv("TILEWRIGHT_NVRTC_LIBRARY", "/chosen", 1);
    EXPECT_THAT(nvrtc_candidates(), testing::ElementsAre("/chosen"));
    unsetenv("CUDA_HOME"), unsetenv("VIRTUAL_ENV"), unsetenv("TILEWRIGHT_NVRTC_LIBRARY");
    size_t last = 0;
    for (const std::string& file : {files[0], std::string("libnvrtc.so.13"), files[2], files[1]}) {
        size_t at = std::find(candidates.begin(), candidates.end(), file) - candidates.begin();
        ASSERT_LT(at, candidates.size()) << file;
        EXPECT_GE(at, last) << file;
        last = at;
    }
}

// Every truncation, and a byte changed in every place of the headers, is refused or read, and never crashes.
TEST_F(NvidiaCompile, DamagedFilesAreSafeToRead) {
    auto object = nvrtc_compile(known_text, "sm_90a");
    ASSERT_TRUE(object.ok());
    const std::string whole = object->bytes;
    for (size_t size = 0; size < whole.size(); size += 7) EXPECT_TRUE(!read_cubin(whole.substr(0, size)).ok() || size > 64) << size;
    for (size_t at = 0; at < whole.size(); at += at < 64 ? 1 : 3) {
        std::string damaged = whole;
        damaged[at] ^= 0xff;
        (void)read_cubin(damaged).ok();
    }
    std::string longer = whole;
    size_t registers = longer.find(std::string("\x04\x2f\x08\x00", 4));  // the attribute of register counts, 8 bytes
    ASSERT_NE(registers, longer.npos);
    longer.replace(registers + 2, 2, "\xff\xff");
    EXPECT_THAT(read_cubin(longer).status().message(), HasSubstr("attribute 47 is longer"));
    EXPECT_THAT(read_cubin("not a cubin").status().message(), HasSubstr("ELF"));
}

// How often nvdisasm prints each mnemonic, in lower case.
std::map<std::string, int> disassembled(const std::string& disassembler, const CodeObject& object) {
    auto scratch = ScratchDirectory::create();
    EXPECT_TRUE(scratch.ok());
    std::string path = scratch->file("kernel.cubin");
    EXPECT_TRUE(write_file(path, object.bytes).ok());
    auto result = run_process({.arguments = {disassembler, path}});
    EXPECT_TRUE(result.ok() && result->succeeded());
    std::map<std::string, int> counts;
    std::regex instruction(R"(/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*))");
    for (std::sregex_iterator match(result->output.begin(), result->output.end(), instruction), end; match != end; ++match) {
        std::string mnemonic = (*match)[1];
        for (char& letter : mnemonic) letter = (char)std::tolower(letter);
        ++counts[mnemonic];
    }
    return counts;
}

// In every group of the table, over small kernels and over attention as it is shipped.
TEST_F(NvidiaCompile, CountsAgreeWithTheDisassembler) {
    std::string disassembler = find_program("nvdisasm");
    if (disassembler.empty()) GTEST_SKIP() << "nvdisasm is not in PATH";
    std::vector<Result<CodeObject>> objects;
    for (const char* arch : {"sm_80", "sm_89", "sm_90a"}) {
        KernelSpec spec;
        spec.config = {.block_q = 64, .block_kv = 64, .stages = 2, .workers = std::string(arch) == "sm_90a" ? 1 : 4, .persistent = 1};
        auto source = generate(spec, *find_arch(arch));
        ASSERT_TRUE(source.ok()) << source.status().message();
        for (const std::string& text : {std::string(known_text), std::string(spilling_text), source->text}) objects.push_back(nvrtc_compile(text, arch));
    }
    for (const auto& object : objects) {
        ASSERT_TRUE(object.ok()) << object.status().message();
        std::map<std::string, int> expected = disassembled(disassembler, *object);
        CubinKernel kernel = read_cubin(object->bytes)->front();
        std::map<std::string, int> ours(kernel.instructions.begin(), kernel.instructions.end());
        for (const Opcode& opcode : opcodes()) EXPECT_EQ(ours[opcode.name], expected[opcode.name]) << kernel.name << " for " << object->arch << ": " << opcode.name;
    }
}

}  // namespace
}  // namespace tilewright::nvidia
