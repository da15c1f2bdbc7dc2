// Small kernels that need no header, and the tools that know better than we do what is in a code object.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "backends/amd/compiler.h"
#include "core/process.h"
#include "core/scratch_directory.h"

namespace tilewright::amd {

inline KernelSource tiny_kernel() {
    return {.text = R"(
struct Parameters { const float* in; float* out; int count; short odd; };
extern "C" __attribute__((global, amdgpu_flat_work_group_size(128, 128))) void tiny(Parameters p, float factor) {
    __attribute__((shared, aligned(16))) static float shared[640];
    unsigned lane = __builtin_amdgcn_workitem_id_x(), first = __builtin_amdgcn_workgroup_id_x() * 128;
    shared[lane] = p.in[first + lane];
    __builtin_amdgcn_s_barrier();
    p.out[first + lane] = factor * __builtin_amdgcn_exp2f(shared[127 - lane]) * __builtin_amdgcn_exp2f(-shared[lane ^ 1]) / p.count;
})",
            .entry = "tiny",
            .threads = 128};
}

// Needs more registers than it may have: values must be spilled.
inline KernelSource spilling_kernel() {
    return {.text = R"(
extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64), amdgpu_num_vgpr(24))) void spilling(const float* in, float* out) {
    float x[64];
    unsigned lane = __builtin_amdgcn_workitem_id_x();
    #pragma unroll
    for (int i = 0; i < 64; ++i) x[i] = in[i * 1024 + lane];
    #pragma unroll
    for (int i = 0; i < 64; ++i) out[i * 1024 + lane] = x[63 - i] * x[(i * 7) % 64];
})",
            .entry = "spilling",
            .threads = 64};
}

// clang++-19 rather than the compiler that users get: the counts of the tests are its.
inline Result<Compiler> test_compiler() {
    if (find_program("clang++-19").empty()) return Status(StatusCode::unavailable, "clang++-19 is not installed");
    return Compiler{find_program("clang++-19"), "clang++-19"};
}

inline CodeObject compile_for_test(const KernelSource& source, const std::string& arch) {
    auto compiler = test_compiler();
    auto object = compiler.ok() ? compile(*compiler, source, *find_arch(arch)) : Result<CodeObject>(compiler.status());
    EXPECT_TRUE(object.ok()) << object.status().message();
    return object.ok() ? *std::move(object) : CodeObject{};
}

// What `tool` with `options` prints about the object; empty if the tool is not installed.
inline std::string run_tool(const std::string& tool, std::vector<std::string> options, const CodeObject& object) {
    auto scratch = ScratchDirectory::create();
    if (find_program(tool).empty() || !scratch.ok() || !write_file(scratch->file("object"), object.bytes).ok()) return "";
    options.insert(options.begin(), tool), options.push_back(scratch->file("object"));
    auto result = run_process({.arguments = options});
    return result.ok() && result->succeeded() ? result->output : "";
}

// The integer behind `key`, first occurrence; -1 if there is none.
inline int64_t number_after(const std::string& text, const std::string& key) {
    size_t at = text.find(key);
    return at == text.npos ? -1 : atoll(text.c_str() + at + key.size());
}

}  // namespace tilewright::amd
