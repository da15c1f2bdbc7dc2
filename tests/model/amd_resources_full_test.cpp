// What the default configs become on AMD: golden resources and instruction counts, no spills, and occupancy as the compiler sees it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "backends/amd/code_object.h"
#include "backends/backward_plan.h"
#include "core/scratch_directory.h"
#include "model/amd_compiled.h"
#include "model/decode_config.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
const std::string golden_file = TILEWRIGHT_SOURCE_DIR "/tests/golden/amd_resources.json";
const char* const archs[] = {"gfx90a", "gfx942", "gfx1100", "gfx1201"};

std::vector<std::string> problems() {
    std::vector<std::string> result;
    for (int head_dim : {64, 128, 256})
        for (const char* rest : {"bf16,causal", "fp16"}) result.push_back("forward:b4,hq16,sq4096,d" + std::to_string(head_dim) + "," + rest);
    for (const char* rest : {"sq1,skv8192,d64,fp16", "sq1,skv8192,d128,bf16,page16", "sq4,skv8192,d128,bf16,causal"}) result.push_back(std::string("decode:b16,hq32,hkv8,") + rest);
    for (const char* rest : {"d64,fp16", "d128,bf16,causal", "d128,bf16,window127:0,softcap,alibi,sink", "d64,bf16,causal,bias"}) result.push_back(std::string("backward:b4,hq16,sq4096,") + rest);
    return result;
}

// What a problem runs by default, but for what goes row by row.
std::vector<BackwardLaunch> kernels_of(const Problem& problem, const Arch& arch) {
    if (problem.operation == Operation::decode) return {{KernelKind::attention_decode, decode_config(problem, arch, true)}};
    if (problem.operation == Operation::forward) return {{KernelKind::attention_forward, default_config(problem, arch)}};
    std::vector<BackwardLaunch> plan = backward_plan(problem, default_backward_config(problem, arch, true), arch, true);
    std::erase_if(plan, [](const BackwardLaunch& l) { return l.kind == KernelKind::attention_backward_prologue || l.kind == KernelKind::attention_backward_sink; });
    return plan;
}

Json row_of(const Arch& arch, const Problem& problem, const Config& config, KernelKind kind, const Resources& r) {
    Json counts = {{"vgpr", r.registers},           {"agpr", r.accumulation_registers}, {"sgpr", r.scalar_registers},
                   {"lds_bytes", r.shared_bytes},   {"scratch_bytes", r.local_bytes},   {"vgpr_spills", r.vector_spills},
                   {"sgpr_spills", r.scalar_spills}};
    for (const auto& [group, count] : r.instructions)
        if (group == "matrix" || group == "wait" || group == "lds" || group == "barrier") counts[group] = count;
    Json row = {{"arch", arch.name}, {"problem", to_text(problem)}, {"config", Json::parse(to_json(config))}, {"counts", counts}};
    if (is_backward(kind)) row["kernel"] = name(kind);
    return row;
}

// With TILEWRIGHT_WRITE_GOLDEN set the file is written anew, and the differences are for a person to read.
TEST(AmdResources, DefaultConfigsAreAsTheGoldenFileHasThem) {
    if (auto compiler = golden_compiler(); !compiler.ok()) GTEST_SKIP() << compiler.status().message();
    bool writes = getenv("TILEWRIGHT_WRITE_GOLDEN") != nullptr;
    Json golden = Json::array(), now = Json::array();
    if (auto text = read_file(golden_file); text.ok()) golden = Json::parse(*text, nullptr, false);
    ASSERT_TRUE(golden.is_array());
    for (const char* name : archs)
        for (const std::string& text : problems()) {
            const Arch& arch = *find_arch(name);
            Problem problem = *parse_problem(text);
            for (const BackwardLaunch& launch : kernels_of(problem, arch)) {
                auto compiled = compile(arch, problem, launch.config, launch.kind);
                ASSERT_TRUE(compiled.ok()) << name << " " << text << ": " << compiled.status().message();
                Json row = row_of(arch, problem, launch.config, launch.kind, compiled->resources);
                now.push_back(row);
                EXPECT_EQ(compiled->resources.vector_spills, 0) << row.dump();
                EXPECT_EQ(compiled->resources.local_bytes, 0) << row.dump();
                EXPECT_EQ(compiled->resources.scalar_spills, 0) << row.dump();
                EXPECT_TRUE(is_occupancy_of(occupancy(compiled->source, compiled->resources, arch), *compiled, arch)) << row.dump();
                EXPECT_EQ(waves_per_simd(compiled->source, compiled->resources, arch), waves_by_remark(*compiled)) << row.dump();
                auto prediction = predict(compiled->spec, arch, &compiled->resources);
                ASSERT_TRUE(prediction.ok()) << prediction.status().message();
                EXPECT_TRUE(is_occupancy_of(prediction->occupancy, *compiled, arch)) << row.dump();
                if (writes) continue;
                bool found = false;
                for (const Json& old : golden) {
                    if (old["arch"] != row["arch"] || old["problem"] != row["problem"] || old.value("kernel", "") != row.value("kernel", "")) continue;
                    found = true;
                    EXPECT_EQ(old.dump(), row.dump()) << "if this is meant, scripts/update_golden.sh writes it down";
                }
                EXPECT_TRUE(found) << row.dump() << " is not in " << golden_file;
            }
        }
    if (!writes) return;
    std::string lines = "[\n";
    for (size_t i = 0; i < now.size(); ++i) lines += now[i].dump() + (i + 1 < now.size() ? ",\n" : "\n]\n");
    ASSERT_TRUE(write_file(golden_file, lines).ok());
}

// The best candidates of each space by the model, which are those that would be compiled first; all of them where
// TILEWRIGHT_EVERY_CANDIDATE is set.
TEST(AmdResources, TheModelsOccupancyIsTheCompilers) {
    if (auto compiler = golden_compiler(); !compiler.ok()) GTEST_SKIP() << compiler.status().message();
    size_t count = getenv("TILEWRIGHT_EVERY_CANDIDATE") ? 100000 : 4;
    for (const char* name : archs)
        for (const char* text : {"forward:b4,hq16,sq4096,d64,fp16", "forward:b4,hq16,sq4096,d128,bf16,causal"}) {
            const Arch& arch = *find_arch(name);
            Problem problem = *parse_problem(text);
            for (const Config& config : ranked(search_space(problem, arch), count)) {
                auto compiled = compile(arch, problem, config);
                ASSERT_TRUE(compiled.ok()) << name << " " << to_json(config) << ": " << compiled.status().message();
                auto prediction = predict(compiled->spec, arch, &compiled->resources);
                ASSERT_TRUE(prediction.ok()) << prediction.status().message();
                EXPECT_EQ(prediction->occupancy.blocks, waves_by_remark(*compiled) * arch.simds_per_unit / (compiled->source.threads / arch.warp_size)) << name << " " << text << " " << to_json(config);
            }
        }
}

// HIP_PATH, ROCM_PATH, /opt/rocm and /usr are where the header may be.
std::string hip_root() {
    for (const char* variable : {"HIP_PATH", "ROCM_PATH"})
        if (const char* root = getenv(variable); root && read_file(std::string(root) + "/include/hip/hip_runtime.h").ok()) return root;
    for (const char* root : {"/opt/rocm", "/usr"})
        if (read_file(std::string(root) + "/include/hip/hip_runtime.h").ok()) return root;
    return "";
}

TEST(AmdResources, BackwardsOfPackedSequencesSpillNothing) {
    auto compiler = golden_compiler();
    if (!compiler.ok()) GTEST_SKIP() << compiler.status().message();
    for (const char* name : archs)
        for (const char* text : {"backward:hq4,sq1024,d64,bf16,causal", "backward:hq4,sq1024,d128,fp16"}) {
            const Arch& arch = *find_arch(name);
            const Problem problem = *parse_problem(std::string(text) + ",packed");
            for (const BackwardLaunch& launch : backward_plan(problem, default_backward_config(problem, arch, true), arch, true)) {
                const KernelSpec spec{launch.kind, problem, launch.config};
                auto source = generate(spec, arch);
                ASSERT_TRUE(source.ok()) << name << " " << text << ": " << source.status().message();
                auto object = amd::compile(*compiler, *source, arch);
                ASSERT_TRUE(object.ok()) << name << " " << text << ": " << object.status().message();
                auto resources = amd::inspect(*object);
                ASSERT_TRUE(resources.ok()) << resources.status().message();
                EXPECT_EQ(resources->vector_spills, 0) << name << " " << text << " " << tilewright::name(launch.kind);
                EXPECT_EQ(resources->local_bytes, 0) << name << " " << text << " " << tilewright::name(launch.kind);
            }
        }
}

TEST(AmdResources, TheUnitIsOrdinaryHipWithTheSameMachineCode) {
    if (auto compiler = golden_compiler(); !compiler.ok()) GTEST_SKIP() << compiler.status().message();
    std::string root = hip_root();
    if (root.empty()) GTEST_SKIP() << "hip/hip_runtime.h is not installed (Debian: libamdhip64-dev); set HIP_PATH where it is elsewhere";
    for (const char* name : archs) {
        SCOPED_TRACE(name);
        const Arch& arch = *find_arch(name);
        Problem problem = *parse_problem("forward:b4,hq16,sq4096,d64,bf16,causal");
        auto ours = compile(arch, problem, default_config(problem, arch));
        ASSERT_TRUE(ours.ok()) << ours.status().message();
        auto scratch = ScratchDirectory::create();
        ASSERT_TRUE(scratch.ok());
        ASSERT_TRUE(write_file(scratch->file("unit.hip"), "#include <hip/hip_runtime.h>\n" + ours->source.text).ok());
        std::vector<std::string> common = {golden_compiler()->path,
                                           "-x",
                                           "hip",
                                           "--offload-arch=" + arch.name,
                                           "--hip-path=" + root,
                                           "-nogpulib",
                                           "-D__HIP_PLATFORM_AMD__",
                                           "-isystem" + root + "/include",
                                           "-fuse-cuid=none"};
        common.insert(common.end(), amd::compiler_flags().begin(), amd::compiler_flags().end());
        auto run = [&](std::vector<std::string> more) {
            ProcessCommand command;
            command.arguments = common, command.directory = scratch->path();
            command.arguments.insert(command.arguments.end(), more.begin(), more.end());
            auto result = run_process(command);
            EXPECT_TRUE(result.ok() && result->succeeded()) << (result.ok() ? result->error : result.status().message());
        };
        run({"-c", "unit.hip", "-o", "both.o"});  // for the host and the device
        run({"--offload-device-only", "--no-gpu-bundle-output", "unit.hip", "-o", "device"});
        auto bytes = read_file(scratch->file("device"));
        ASSERT_TRUE(bytes.ok()) << bytes.status().message();
        auto theirs = amd::read_code_object(*bytes), own = amd::read_code_object(ours->object.bytes);
        ASSERT_TRUE(theirs.ok() && own.ok());
        EXPECT_EQ(theirs->kernels[0].code, own->kernels[0].code);
    }
}

}  // namespace
}  // namespace tilewright
