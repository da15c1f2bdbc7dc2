// What waits for what in the main loop of AMD's forwards and decodes, by their machine code: loads of keys, values and pages' numbers have a product to arrive in.
#include <gtest/gtest.h>

#include <charconv>
#include <deque>
#include <map>
#include <sstream>

#include "core/scratch_directory.h"
#include "model/amd_compiled.h"

namespace tilewright {
namespace {

struct Instruction {
    std::string text;
    size_t target = SIZE_MAX;  // of a jump
    bool is_matrix() const { return text.starts_with("v_mfma") || text.starts_with("v_wmma"); }
    bool is_jump_always() const { return text.starts_with("s_branch"); }
    // How many loads may be on their way after it; INT_MAX: it does not say.
    int loads_after() const {
        for (const auto& [before, base] : {std::pair{"vmcnt(", 10}, std::pair{"s_wait_loadcnt 0x", 16}})
            if (const size_t at = text.find(before); at != text.npos) return std::stoi(text.substr(at + std::string(before).size()), nullptr, base);
        if (text.starts_with("s_wait_loadcnt_dscnt 0x")) return std::stoi(text.substr(23), nullptr, 16) >> 8;
        return INT_MAX;
    }
};

// Lines of llvm-objdump: "\ts_cbranch_scc1 150    // 000000002564: BF850096 <attention_forward+0x11c0>".
std::vector<Instruction> parse(const std::string& disassembly) {
    std::vector<Instruction> list;
    std::map<uint64_t, size_t> places;
    std::vector<std::pair<size_t, uint64_t>> jumps;
    uint64_t symbol = 0;
    std::istringstream lines(disassembly);
    for (std::string line; std::getline(lines, line);) {
        const size_t comment = line.find("// "), first = line.find_first_not_of(" \t");
        if (comment == line.npos) {
            if (line.ends_with(">:")) symbol = std::stoull(line, nullptr, 16);
            continue;
        }
        places[std::stoull(line.substr(comment + 3), nullptr, 16)] = list.size();
        if (const size_t offset = line.rfind("+0x"); offset != line.npos && line.find("branch") != line.npos) jumps.emplace_back(list.size(), symbol + std::stoull(line.substr(offset + 3), nullptr, 16));
        list.push_back({line.substr(first, comment - first)});
    }
    for (const auto& [from, to] : jumps)
        if (places.contains(to)) list[from].target = places[to];
    return list;
}

struct Loop {
    size_t begin = 0, end = 0, products = 0;
};
Loop main_loop(const std::vector<Instruction>& code) {  // the shortest of those with the most products
    Loop best;
    for (size_t i = 0; i < code.size(); ++i) {
        if (code[i].target >= i) continue;
        const size_t products = static_cast<size_t>(std::count_if(code.begin() + static_cast<long>(code[i].target), code.begin() + static_cast<long>(i), [](const Instruction& x) { return x.is_matrix(); }));
        if (products > best.products || (products == best.products && i - code[i].target < best.end - best.begin)) best = {code[i].target, i, products};
    }
    return best;
}

// Two rounds of the loop for whole tiles, whose way jumps only where it must: of each load, how many products lie between it and the wait for it.
std::vector<size_t> products_before_waits(const std::vector<Instruction>& code, const Loop& loop) {
    std::vector<size_t> result;
    std::deque<size_t> loads;
    size_t products = 0;
    for (size_t i = loop.begin, rounds = 0; rounds < 2 && i < code.size();) {
        products += code[i].is_matrix();
        if (code[i].text.starts_with("global_load")) loads.push_back(products);
        for (const int left = code[i].loads_after(); left != INT_MAX && loads.size() > static_cast<size_t>(left); loads.pop_front()) result.push_back(products - loads.front());
        const bool again = code[i].target == loop.begin;
        rounds += again;
        i = again || code[i].is_jump_always() ? code[i].target : i + 1;
    }
    return result;
}

class AmdWaits : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Archs, AmdWaits, testing::Values("gfx90a", "gfx942", "gfx1100", "gfx1201"), [](const auto& test) { return std::string(test.param); });

TEST_P(AmdWaits, KeysAndValuesHaveAProductToArriveIn) {
    const std::string objdump = find_program("llvm-objdump-19");
    if (!golden_compiler().ok() || objdump.empty()) GTEST_SKIP() << "clang++-19 or llvm-objdump-19 is not installed";
    const Arch& arch = *find_arch(GetParam());
    const std::string forward = "forward:b4,hq16,sq4096,", decode = "decode:b16,hq32,hkv8,sq1,skv8192,";
    for (const std::string& text : {forward + "d64,bf16", forward + "d64,fp16,causal", forward + "d128,bf16", forward + "d128,fp16,causal", forward + "d256,fp16", forward + "d256,bf16,causal",
                                    forward + "d128,bf16,window1000:0,sink", decode + "d64,fp16", decode + "d64,bf16,page16", decode + "d128,bf16", decode + "d128,fp16,page16"}) {
        const Problem problem = *parse_problem(text);
        const auto compiled = compile(arch, problem, default_config(problem, arch));
        ASSERT_TRUE(compiled.ok()) << compiled.status().message();
        auto scratch = ScratchDirectory::create();
        ASSERT_TRUE(scratch.ok() && write_file(scratch->file("object"), compiled->object.bytes).ok());
        const auto disassembly = run_process({.arguments = {objdump, "-d", scratch->file("object")}});
        ASSERT_TRUE(disassembly.ok() && disassembly->succeeded());
        const std::vector<Instruction> code = parse(disassembly->output);
        const Loop loop = main_loop(code);
        ASSERT_GT(loop.products, 0u) << text;
        const std::vector<size_t> before = products_before_waits(code, loop);
        ASSERT_FALSE(before.empty()) << text;
        for (const size_t products : before) EXPECT_GE(products, loop.products / 2) << arch.name << " " << text;
    }
}

}  // namespace
}  // namespace tilewright
