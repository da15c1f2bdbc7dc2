// The search space on every architecture: what is legal fits, what is not has a reason, and the default always exists.
#include "model/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "model/model.h"

namespace tilewright {
namespace {

Problem problem(const std::string& text) {
    Result<Problem> result = parse_problem(text);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return *result;
}

std::vector<Arch> all_archs() {
    std::vector<Arch> archs(known_archs().begin(), known_archs().end());
    archs.push_back(*find_arch("cpu"));
    return archs;
}

const char* const problems[] = {"forward:b4,hq32,hkv8,sq4096,d128,bf16,causal", "forward:hq8,sq1024,d64,fp16", "forward:hq16,hkv8,sq512,d256,bf16,softcap,window4095:0",
                                "forward:hq128,sq300,skv700,d192,dv128,bf16,causal", "forward:b8,hq32,hkv8,sq1,skv8192,d128,bf16", "forward:sq5,d40,bf16"};

TEST(Space, IndexesEveryMemberOfTheProductOnce) {
    Space space = search_space(problem(problems[0]), *find_arch("gfx942"));
    std::set<std::string> seen;
    for (int64_t index = 0; index < space.size(); ++index) seen.insert(to_json(space.at(index)));
    EXPECT_EQ(int64_t(seen.size()), space.size());
    EXPECT_GT(space.size(), 100);
}

TEST(Space, LegalConfigsFitAndRejectedOnesSayWhyWithANumber) {
    for (const Arch& arch : all_archs())
        for (const char* text : problems) {
            Problem p = problem(text);
            Space space = search_space(p, arch);
            std::vector<Rejection> rejected;
            std::vector<Config> legal = enumerate(space, &rejected);
            EXPECT_EQ(int64_t(legal.size() + rejected.size()), space.size());
            EXPECT_FALSE(legal.empty()) << arch.name << " " << text;
            for (const Config& config : legal) {
                Result<Prediction> prediction = predict(dense_spec(p, config), arch);
                ASSERT_TRUE(prediction.ok()) << arch.name << " " << to_json(config) << ": " << prediction.status().message();
                EXPECT_GE(prediction->time_us, roofline_us(p, arch)) << arch.name << " " << to_json(config);
            }
            for (const Rejection& rejection : rejected)
                EXPECT_TRUE(std::any_of(rejection.reason.begin(), rejection.reason.end(), [](unsigned char c) { return std::isdigit(c); })) << rejection.reason;
        }
}

TEST(Space, DefaultIsLegalWhereAnythingIsAndTheFastestByTheModel) {
    for (const Arch& arch : all_archs())
        for (const char* text : problems) {
            Problem p = problem(text);
            Space space = search_space(p, arch);
            Config config = default_config(p, arch);
            EXPECT_TRUE(check(space, config).ok()) << arch.name << " " << text;
            EXPECT_EQ(ranked(space, 3).at(0), config);
        }
}

TEST(Space, DefaultExistsForProblemsWithoutAnyWork) {
    for (const Arch& arch : all_archs())
        for (const char* text : {"forward:b0,sq4,d64,bf16", "forward:sq0,skv4,d64,bf16", "forward:sq4,skv0,d64,bf16", "forward:sq1,d1,bf16", "forward:sq7,d256,fp32"}) {
            Config config = default_config(problem(text), arch);
            EXPECT_GT(config.block_q, 0) << arch.name << " " << text;
        }
}

TEST(Space, NeighboursAreLegalAndDifferInOneField) {
    for (const Arch& arch : all_archs()) {
        Problem p = problem(problems[0]);
        Space space = search_space(p, arch);
        Config config = default_config(p, arch);
        std::vector<Config> near = neighbours(space, config);
        EXPECT_FALSE(near.empty()) << arch.name;
        for (const Config& other : near) {
            int differences = 0;
            for (const ConfigField& field : config_fields()) differences += config.*field.member != other.*field.member;
            EXPECT_EQ(differences, 1) << to_json(config) << " " << to_json(other);
            EXPECT_TRUE(check(space, other).ok());
        }
    }
}

TEST(Space, RankedIsSortedByPredictedTime) {
    Problem p = problem(problems[1]);
    const Arch& arch = *find_arch("sm_80");
    double before = 0;
    for (const Config& config : ranked(search_space(p, arch), 50)) {
        double time = predict(dense_spec(p, config), arch)->time_us;
        EXPECT_GE(time, before);
        before = time;
    }
}

Status check_hopper(const char* text, int block_q, int block_kv, int overlapped) {
    Config config;
    config.block_q = block_q, config.block_kv = block_kv, config.stages = 2, config.workers = block_q / 64;
    config.overlapped = overlapped, config.turns = block_q > 64, config.persistent = 1;
    return check(search_space(problem(text), *find_arch("sm_90a")), config);
}

TEST(Space, HoldsTheTilesThatAreKnownToWinOnHopperAndNotThoseKnownToSpill) {
    EXPECT_TRUE(check_hopper("forward:hq16,sq4096,d128,bf16", 192, 128, 0).ok());
    EXPECT_TRUE(check_hopper("forward:hq16,sq4096,d128,bf16", 192, 80, 1).ok());
    EXPECT_TRUE(check_hopper("forward:hq32,sq4096,d64,bf16", 192, 128, 1).ok());
    EXPECT_TRUE(check_hopper("forward:hq8,sq4096,d256,bf16", 128, 80, 1).ok());
    EXPECT_FALSE(check_hopper("forward:hq16,sq4096,d128,bf16", 192, 96, 1).ok());   // spills
    EXPECT_FALSE(check_hopper("forward:hq16,sq4096,d128,bf16", 192, 144, 0).ok());  // spills
    EXPECT_FALSE(check_hopper("forward:hq8,sq4096,d256,bf16", 192, 128, 0).ok());   // 98304 + 4 * 65536 bytes
}

TEST(Space, RepeatableBackwardsNeverAddInAnyOrder) {
    for (const Arch& arch : all_archs()) {
        Problem any = problem("backward:hq8,sq1024,d128,bf16,causal"), repeatable = any;
        repeatable.deterministic = true;
        EXPECT_NE(default_config(repeatable, arch).dq, 1) << arch.name;
        for (const Config& config : enumerate(search_space(repeatable, arch))) ASSERT_NE(config.dq, 1) << arch.name << ": " << to_json(config);
        Config adding = default_config(any, arch);
        adding.dq = 1;
        Status status = check(search_space(repeatable, arch), adding);
        ASSERT_FALSE(status.ok()) << arch.name;
        EXPECT_NE(status.message().find("dq is 1"), std::string::npos) << status.message();
    }
    EXPECT_EQ(default_config(problem("backward:hq8,sq1024,d128,bf16,causal"), *find_arch("sm_90a")).dq, 1) << "the fastest may";
}

// 64 registers of keys and values on their way leave a mask no room beside 256 columns: 10 to 17 were spilled on gfx90a, gfx942 and gfx950.
TEST(Space, FewWavesHaveNoRoomForAMaskBeside256ColumnsOnCdna) {
    Config config;
    config.block_q = 64, config.block_kv = 64, config.workers = 4, config.blocks = 2;
    for (const char* name : {"gfx90a", "gfx942", "gfx950"}) {
        const Arch& arch = *find_arch(name);
        EXPECT_TRUE(check(search_space(problem("forward:b4,hq16,sq4096,d256,bf16"), arch), config).ok());
        EXPECT_FALSE(check(search_space(problem("forward:b4,hq16,sq4096,d256,bf16,causal"), arch), config).ok());
    }
}

TEST(Space, LargerTilesThanTheProblemAreNotCandidates) {
    for (const Arch& arch : all_archs()) {
        Space space = search_space(problem("forward:hq32,hkv8,sq1,skv100,d128,bf16"), arch);
        for (const SpaceField& field : space.fields) {
            int most = std::string(field.name) == "block_q" ? 64 : std::string(field.name) == "block_kv" ? 128 : INT32_MAX;
            EXPECT_LE(field.values.back(), most) << arch.name << " " << field.name;
        }
    }
}

}  // namespace
}  // namespace tilewright
