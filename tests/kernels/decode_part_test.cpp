// The division of decoding: every KV tile once, every part's result in a place of its own.
#include "kernels/decode_part.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace tilewright::kernel {
namespace {

struct Causal {
    static constexpr int block_q = 4, block_kv = 64;
    static constexpr bool packed = false;
    static constexpr Mask mask = Mask::causal;
};
struct Window {
    static constexpr int block_q = 16, block_kv = 32;
    static constexpr bool packed = false;
    static constexpr Mask mask = Mask::window;
};

// Goes through all units of all lines as a launch does, and checks them against the items taken one by one.
template <class Config>
void check_division(const DecodeParameters& decode) {
    int lines = line_count<Config>(decode.forward);
    std::map<int, std::vector<int>> seen;  // KV tiles by item
    std::map<int, int> parts;
    std::set<long long> slots;
    for (int line = 0; line < lines; ++line)
        for (int unit = 0; unit < decode.units; ++unit) {
            Parts<Config> of_unit(decode, line, unit);
            for (Part<Config> part; of_unit.next(part);) {
                ASSERT_LT(part.item, decode.forward.batch * lines);
                for (int kv = part.kv_begin; kv < part.kv_end; ++kv) seen[part.item].push_back(kv);
                ++parts[part.item];
                ASSERT_LE(part.first_unit, unit);
                ASSERT_GE(part.last_unit, unit);
                if (part.whole()) continue;
                ASSERT_LT(part.kv_begin, part.kv_end);
                ASSERT_TRUE(slots.insert(part.slot_of(unit)).second) << "slot " << part.slot_of(unit) << " is used twice";
                ASSERT_LT(part.slot_of(unit), 2LL * decode.units * lines);
                for (int other = part.first_unit; other <= part.last_unit; ++other) {  // what combine reads is what others wrote
                    Parts<Config> of_other(decode, line, other);
                    for (Part<Config> same; of_other.next(same);)
                        ASSERT_TRUE(same.item != part.item || part.slot_of(other) == same.slot_of(other));
                }
                ASSERT_EQ(part.parts(), part.last_unit - part.first_unit + 1);
            }
        }
    for (int line = 0; line < lines; ++line)
        for (int sequence = 0; sequence < decode.forward.batch; ++sequence) {
            Tile<Config> item = item_of<Config>(decode, line, sequence, decode.lengths[sequence]);
            std::vector<int> all;
            for (int kv = item.kv_begin; kv < item.kv_end; ++kv) all.push_back(kv);
            ASSERT_EQ(seen[sequence * lines + line], all);
            ASSERT_GE(parts[sequence * lines + line], 1) << "nobody writes sequence " << sequence;
        }
}

TEST(DecodePart, TakesEveryTileOnceAndGivesEveryPartAPlaceOfItsOwn) {
    std::mt19937 random(1);
    for (int run = 0; run < 60; ++run) {
        std::vector<int> lengths(1 + random() % 12);
        for (int& length : lengths) length = random() % 4 == 0 ? static_cast<int>(random() % 3) : static_cast<int>(random() % 1500);
        DecodeParameters decode{};
        decode.forward.batch = static_cast<int>(lengths.size());
        decode.forward.heads_kv = 1 + static_cast<int>(random() % 2), decode.forward.heads_q = decode.forward.heads_kv * (1 + static_cast<int>(random() % 4));
        decode.forward.seq_q = 1 + static_cast<int>(random() % 9), decode.forward.seq_kv = 1500;
        decode.forward.window_left = static_cast<int>(random() % 300), decode.forward.window_right = static_cast<int>(random() % 5);
        decode.lengths = lengths.data();
        decode.units = 1 + static_cast<int>(random() % 40);
        decode.top_left = static_cast<int>(random() % 2);
        check_division<Causal>(decode);
        check_division<Window>(decode);
        if (HasFatalFailure()) return;
    }
}

TEST(DecodePart, TakesLengthsOutsideTheirRangeAsTheNearestInside) {
    std::vector<int> lengths{-5, 2000000000, 700};
    DecodeParameters decode{};
    decode.forward.batch = 3, decode.forward.heads_q = decode.forward.heads_kv = decode.forward.seq_q = 1, decode.forward.seq_kv = 1000;
    decode.lengths = lengths.data();
    for (int sequence = 0; sequence < 3; ++sequence) EXPECT_EQ(item_of<Causal>(decode, 0, sequence, lengths[static_cast<size_t>(sequence)]).seq_kv, (std::vector{0, 1000, 700})[static_cast<size_t>(sequence)]);
}

TEST(DecodePart, GivesUnitsThatDifferByOneTileAtMost) {
    for (int length : {1, 7, 100})
        for (int most : {1, 3, 7, 200}) {
            Cut cut(length, most);
            EXPECT_EQ(cut.start_of(cut.units), length);
            for (int unit = 0; unit < cut.units; ++unit) {
                int size = cut.start_of(unit + 1) - cut.start_of(unit);
                EXPECT_TRUE(size >= length / cut.units && size <= length / cut.units + 1 && size > 0);
                for (int i = cut.start_of(unit); i < cut.start_of(unit + 1); ++i) EXPECT_EQ(cut.unit_of(i), unit);
            }
        }
}

}  // namespace
}  // namespace tilewright::kernel
