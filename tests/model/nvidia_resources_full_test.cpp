// What configs become on NVIDIA without a device: golden registers and matrix instructions of the model's choices, none of which spills, and
// a sample of the whole space that compiles.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "backends/backend.h"
#include "core/process.h"
#include "core/scratch_directory.h"
#include "model/space.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
const std::string golden_file = TILEWRIGHT_SOURCE_DIR "/tests/golden/nvidia_resources.json";
const char* const archs[] = {"sm_80", "sm_90a"};

std::vector<std::string> problems() {
    std::vector<std::string> result;
    for (int head_dim : {64, 128, 256})
        for (const char* rest : {"bf16,causal", "fp16"}) result.push_back("forward:b4,hq16,sq4096,d" + std::to_string(head_dim) + "," + rest);
    return result;
}

Result<Resources> compile(const Arch& arch, const Problem& problem, const Config& config) {
    Backend& backend = **find_backend("nvidia");
    TILEWRIGHT_ASSIGN_OR_RETURN(KernelSource source, generate(dense_spec(problem, config), arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(CodeObject object, backend.compile(source, arch));
    return backend.inspect(object);
}

// With TILEWRIGHT_WRITE_GOLDEN set the file is written anew, and the differences are for a person to read.
TEST(NvidiaResources, DefaultConfigsAreAsTheGoldenFileHasThem) {
    Result<std::string> toolchain = (*find_backend("nvidia"))->toolchain();
    if (!toolchain.ok()) GTEST_SKIP() << toolchain.status().message();
    bool writes = getenv("TILEWRIGHT_WRITE_GOLDEN") != nullptr;
    Json golden = Json::object(), rows = Json::array();
    if (auto text = read_file(golden_file); text.ok()) golden = Json::parse(*text, nullptr, false);
    ASSERT_TRUE(golden.is_object());
    if (!writes && golden.value("toolchain", "") != *toolchain) GTEST_SKIP() << "the golden file is of " << golden.value("toolchain", "none") << ", here is " << *toolchain;
    for (const char* name : archs)
        for (const std::string& text : problems()) {
            const Arch& arch = *find_arch(name);
            Problem problem = *parse_problem(text);
            Config config = default_config(problem, arch);
            Result<Resources> now = compile(arch, problem, config);
            ASSERT_TRUE(now.ok()) << name << " " << text << ": " << now.status().message();
            EXPECT_EQ(now->spill_bytes, 0) << name << " " << text << " " << to_json(config);
            Json counts = {{"registers", now->registers}, {"local_bytes", now->local_bytes}, {"spill_bytes", now->spill_bytes}};
            for (const auto& [group, count] : now->instructions)
                if (group == "hgmma" || group == "hmma") counts[group] = count;
            EXPECT_GT(arch.family == Family::sm90 ? counts.value("hgmma", 0) : counts.value("hmma", 0), 0) << name << " " << text;
            Json row = {{"arch", name}, {"problem", to_text(problem)}, {"config", Json::parse(to_json(config))}, {"counts", counts}};
            if (!writes) {
                EXPECT_EQ(row, golden["rows"].size() > rows.size() ? golden["rows"][rows.size()] : Json()) << row.dump();
            }
            rows.push_back(row);
        }
    if (!writes) return;
    std::string text = "{\"toolchain\":" + Json(*toolchain).dump() + ",\"rows\":[\n";
    for (size_t i = 0; i < rows.size(); ++i) text += rows[i].dump() + (i + 1 < rows.size() ? ",\n" : "\n");
    EXPECT_TRUE(write_file(golden_file, text + "]}\n").ok());
}

TEST(NvidiaResources, ASampleOfEverySpaceCompiles) {
    if (auto toolchain = (*find_backend("nvidia"))->toolchain(); !toolchain.ok()) GTEST_SKIP() << toolchain.status().message();
    constexpr size_t sample = 6;
    for (const char* name : archs)
        for (const char* text : {"forward:b4,hq32,hkv8,sq4096,d128,bf16,causal", "forward:b4,hq16,sq4096,d64,fp16", "forward:hq16,sq2048,d192,dv128,bf16,window256:0"}) {
            Space space = search_space(*parse_problem(text), *find_arch(name));
            std::vector<Config> legal = enumerate(space);
            ASSERT_GT(legal.size(), sample) << name << " " << text;
            for (size_t i = 0; i < sample; ++i) {
                const Config& config = legal[(2 * i + 1) * legal.size() / (2 * sample)];
                Result<Resources> now = compile(space.arch, space.problem, config);
                EXPECT_TRUE(now.ok()) << name << " " << text << " " << to_json(config) << ": " << now.status().message();
            }
        }
}

}  // namespace
}  // namespace tilewright
