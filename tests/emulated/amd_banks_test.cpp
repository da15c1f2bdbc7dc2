// Bank conflicts of every access to LDS in the main loop. LDS has 32 banks of four bytes, so 128 bytes of neighbouring lanes can be served at once: eight
// lanes of a 16-byte access, sixteen of an 8-byte one. Which lanes really are served together the manuals do not say.
#include "amd_banks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace tilewright::emulated {
namespace {

// The most different words that one bank is asked for by lanes served at once: 1 where there is no conflict.
int ways(const LdsAccess& access) {
    const size_t at_once = size_t(128 / access.bytes);
    int worst = 1;
    for (size_t first = 0; first < access.offset.size(); first += at_once) {
        std::map<int, std::set<int>> words;
        for (size_t lane = first; lane < std::min(first + at_once, access.offset.size()); ++lane)
            if (access.offset[lane] >= 0)
                for (int byte = 0; byte < access.bytes; byte += 4) words[(access.offset[lane] + byte) / 4 % 32].insert(access.offset[lane] + byte);
        for (const auto& [bank, different] : words) worst = std::max(worst, int(different.size()));
    }
    return worst;
}

// Values of tiles of 32 or 16 keys have rows of 64 or 32 bytes, of which two or four share 128: permuting those together would keep their stores
// apart, but would need registers that 256 columns on RDNA do not leave.
TEST(AmdBanks, NoAccessHasConflictsButStoresOfValuesInShortRows) {
    std::map<std::string, int> worst;
    size_t lanes = 0;
    for (const LdsAccess& access : lds_accesses()) {
        worst[access.what] = std::max(worst[access.what], ways(access));
        for (int offset : access.offset) lanes += offset >= 0;
    }
    EXPECT_EQ(worst.size(), (6u * 5 + 2) * 4);
    EXPECT_GT(lanes, 10000u);
    for (const auto& [what, most] : worst) {
        const int sharing = what.ends_with("block_kv 32 stores of values") ? 2 : what.ends_with("block_kv 16 stores of values") ? 4 : 1;
        EXPECT_EQ(most, sharing) << what;
    }
}

TEST(AmdBanks, ConflictsAreCounted) {
    EXPECT_EQ(ways({"one row each", 16, {0, 128, 256, 384, 512, 640, 768, 896}}), 8);
    EXPECT_EQ(ways({"the same piece", 16, {64, 64, 64, 64, 64, 64, 64, 64}}), 1);
    EXPECT_EQ(ways({"two halves", 8, {0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 0 + 128, 112}}), 2);
}

}  // namespace
}  // namespace tilewright::emulated
