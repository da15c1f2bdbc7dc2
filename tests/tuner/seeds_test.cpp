// What a search begins with: the model's choice, and winners of like problems, the nearest first.
#include "tuner/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/scratch_directory.h"
#include "db/defaults.h"
#include "model/space.h"
#include "runtime/device_class.h"

namespace tilewright {
namespace {

const char* const text = "forward:b4,hq16,hkv16,sq4096,skv4096,d128,bf16,causal";

DeviceInfo h200() {
    DeviceInfo device;
    device.arch = *find_arch("sm_90a");
    device.name = "NVIDIA H200";
    return device;
}

TEST(Seeds, BeginWithTheModelsChoiceAndTakeTheWinnersThatAreBuiltIn) {
    const ScratchDirectory folder = *ScratchDirectory::create();
    Store store = *Store::open(folder.file("t.db"), StoreMode::create);
    const Problem problem = *parse_problem(text);
    const std::vector<Config> seeds = *seed_configs(problem, h200(), store, 8);
    const auto own = std::ranges::find(default_rows(), problem, &MeasurementRow::problem);
    ASSERT_NE(own, default_rows().end());
    ASSERT_GE(seeds.size(), 2u);
    EXPECT_LE(seeds.size(), 9u);
    EXPECT_EQ(seeds[0], default_config(problem, h200().arch));
    EXPECT_TRUE(std::ranges::find(seeds, own->measurement.config) <= seeds.begin() + 1) << "its own winner is the nearest";
}

TEST(Seeds, ANearWinnerOfTheDatabaseComesBeforeThose) {
    const ScratchDirectory folder = *ScratchDirectory::create();
    Store store = *Store::open(folder.file("t.db"), StoreMode::create);
    const auto add = [&](const char* of, int block_kv) {
        MeasurementRow row{*parse_problem(of), device_class(h200()), {"nvrtc", "", "a"}, {}, true};
        row.measurement.median_us = row.measurement.p20_us = row.measurement.p80_us = 1e6;
        row.measurement.config.block_kv = block_kv;
        ASSERT_TRUE(store.add_all({row}).ok());
    };
    add("forward:b4,hq16,hkv16,sq4096,skv4096,d128,bf16,causal", 48);
    add("forward:b4,hq16,hkv16,sq64,skv64,d128,bf16", 112);
    add("forward:b4,hq16,hkv16,sq4096,skv4096,d64,bf16,causal", 176);
    add("backward:b4,hq16,hkv16,sq4096,skv4096,d128,bf16,causal", 160);
    const std::vector<Config> seeds = *seed_configs(*parse_problem(text), h200(), store, 100);
    std::vector<int> columns;
    for (const Config& seed : seeds) columns.push_back(seed.block_kv);
    EXPECT_EQ(columns.at(1), 48);
    EXPECT_EQ(columns.back(), 112) << "the farthest";
    EXPECT_EQ(std::ranges::count(columns, 176), 0) << "of another head dimension";
    EXPECT_EQ(std::ranges::count(columns, 160), 0) << "of another operation";
}

}  // namespace
}  // namespace tilewright
