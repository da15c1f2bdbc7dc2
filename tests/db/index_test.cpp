// The index against the database's own views, and the metric behind "nearest".
#include <algorithm>
#include <map>

#include "db/defaults.h"
#include "db/embedded.h"
#include "db/fixtures.h"
#include "db/json_rows.h"
#include "db/lookup/index.h"
#include "db/lookup/load.h"
#include "db/lookup/nearest.h"

namespace tilewright {
namespace {

using namespace testing;  // NOLINT: the fixtures are tilewright::testing
using lookup::Index;

using IndexTest = StoreTest;

uint32_t next(uint32_t& random) { return (random = random * 1664525 + 1013904223) >> 8; }

// A few hundred rows with many ties in times and dates.
std::vector<MeasurementRow> random_rows(uint32_t seed) {
    std::vector<MeasurementRow> rows;
    for (int i = 0; i < 400; ++i) {
        Measurement m = timed(10 + next(seed) % 20, 16 + static_cast<int>(next(seed) % 5), 100 + next(seed) % 10);
        if (next(seed) % 5 == 0) m.outcome = Outcome::correctness;
        if (next(seed) % 8 == 0) {
            m.race = 1000 + next(seed) % 3;
            m.place = 1 + static_cast<int>(next(seed) % 4);
        }
        rows.push_back({problem("forward:sq" + std::to_string(1 + next(seed) % 6)), device(next(seed) % 2 ? "one" : "two"),
                        toolchain(next(seed) % 3 ? "new" : "old"), m, true});
    }
    return rows;
}

TEST_F(IndexTest, loading_finds_the_winners_that_the_view_best_shows) {
    for (uint32_t seed = 1; seed <= 5; ++seed) {
        Store store = open(StoreMode::create, std::to_string(seed) + ".db");
        ASSERT_TRUE(store.add_all(random_rows(seed)).ok());
        Result<lookup::Rows> rows = lookup::load_rows(store);
        ASSERT_TRUE(rows.ok()) << rows.status().message();
        Index index;
        index.add_layer("one file", *rows);
        size_t winners = 0;
        ASSERT_TRUE(store.for_each_best([&](const MeasurementRow& best) {
            ++winners;
            const auto at = std::find(index.devices().begin(), index.devices().end(), best.device);
            const lookup::Entry* entry = index.find(best.problem, static_cast<uint32_t>(at - index.devices().begin()));
            EXPECT_NE(entry, nullptr);
            if (!entry) return Status();
            const lookup::Candidate& winner = index.candidates(*entry)[0];
            EXPECT_EQ(winner.median_us, best.measurement.median_us);
            EXPECT_EQ(winner.measured_at, best.measurement.measured_at);
            EXPECT_EQ(to_json(index.config(winner)), to_json(best.measurement.config)) << to_text(best.problem) << " " << best.device.name << " seed " << seed;
            return Status();
        }).ok());
        EXPECT_EQ(winners, index.entries().size());
        EXPECT_GT(winners, 8u);
    }
}

TEST_F(IndexTest, rows_in_memory_and_in_a_file_make_the_same_index) {
    // Ties between toolchains are told apart by their row in a file; in memory there is none, so dates differ here.
    std::vector<MeasurementRow> rows = random_rows(7);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].measurement.measured_at = 1000 + static_cast<int64_t>(i);
    Store store = open();
    ASSERT_TRUE(store.add_all(rows).ok());
    Index from_file, from_memory;
    from_file.add_layer("x", *lookup::load_rows(store));
    from_memory.add_layer("x", lookup::rows_of(rows));
    ASSERT_EQ(from_file.entries().size(), from_memory.entries().size());
    for (const lookup::Entry& entry : from_file.entries()) {
        const auto device = std::find(from_memory.devices().begin(), from_memory.devices().end(), from_file.devices()[entry.device]);
        const lookup::Entry* other = from_memory.find(entry.problem, static_cast<uint32_t>(device - from_memory.devices().begin()));
        ASSERT_NE(other, nullptr);
        EXPECT_EQ(from_file.candidates(entry)[0].median_us, from_memory.candidates(*other)[0].median_us);
        EXPECT_EQ(std::pair(entry.count, entry.old_toolchain), std::pair(other->count, other->old_toolchain));
    }
}

TEST_F(IndexTest, every_field_of_a_problem_tells_it_from_another) {
    const Problem base = problem("forward:b2,hq8,hkv4,sq100,skv200,d64,dv32,fp16,window5:6");
    const std::vector<std::string> others = {
        "backward:b2,hq8,hkv4,sq100,skv200,d64,dv32,fp16,window5:6", "forward:b3,hq8,hkv4,sq100,skv200,d64,dv32,fp16,window5:6",
        "forward:b2,hq16,hkv4,sq100,skv200,d64,dv32,fp16,window5:6", "forward:b2,hq8,hkv8,sq100,skv200,d64,dv32,fp16,window5:6",
        "forward:b2,hq8,hkv4,sq101,skv200,d64,dv32,fp16,window5:6", "forward:b2,hq8,hkv4,sq100,skv201,d64,dv32,fp16,window5:6",
        "forward:b2,hq8,hkv4,sq100,skv200,d72,dv32,fp16,window5:6", "forward:b2,hq8,hkv4,sq100,skv200,d64,dv40,fp16,window5:6",
        "forward:b2,hq8,hkv4,sq100,skv200,d64,dv32,bf16,window5:6", "forward:b2,hq8,hkv4,sq100,skv200,d64,dv32,fp16,window4:6",
        "forward:b2,hq8,hkv4,sq100,skv200,d64,dv32,fp16,window5:7", "forward:b2,hq8,hkv4,sq100,skv200,d64,dv32,fp16,window5:6,topleft",
        "forward:b2,hq8,hkv4,sq100,skv200,d64,dv32,fp16,window5:6,sink", "forward:b2,hq8,hkv4,sq100,skv200,d64,dv32,fp16,window5:6,bias",
        "forward:b2,hq8,hkv4,sq100,skv200,d64,dv32,fp16,window5:6,alibi", "forward:b2,hq8,hkv4,sq100,skv200,d64,dv32,fp16,window5:6,softcap",
        "forward:b2,hq8,hkv4,sq100,skv200,d64,dv32,fp16,window5:6,packed", "forward:b2,hq8,hkv4,sq=loguniform(9,100),skv200,d64,dv32,fp16,window5:6,packed",
        "forward:b2,hq8,hkv4,sq=loguniform(9,100),skv200,d64,dv32,fp16,window5:6,packed,seed1", "forward:b2,hq8,hkv4,sq100,skv=loguniform(9,200),d64,dv32,fp16,window5:6,packed"};
    EXPECT_NE(lookup::hash_of(problem("backward:sq100")), lookup::hash_of(problem("backward:sq100,deterministic")));
    std::map<uint64_t, std::string> seen = {{lookup::hash_of(base), "base"}};
    for (const std::string& other : others) {
        const auto [at, added] = seen.emplace(lookup::hash_of(problem(other)), other);
        EXPECT_TRUE(added) << other << " hashes like " << at->second;
    }
}

TEST_F(IndexTest, distance_is_zero_to_itself_symmetric_and_grows_with_doublings) {
    const auto sizes = [](const std::string& text, int units = 132) { return lookup::sizes_of(problem(text), units); };
    const lookup::Sizes base = sizes("forward:b4,hq32,hkv8,sq1024,d128");
    EXPECT_EQ(lookup::distance(base, base), 0);
    double last = 0;
    for (const char* longer : {"forward:b4,hq32,hkv8,sq1100,d128", "forward:b4,hq32,hkv8,sq2048,d128", "forward:b4,hq32,hkv8,sq4096,d128"}) {
        const double far = lookup::distance(base, sizes(longer));
        EXPECT_GT(far, last);
        EXPECT_EQ(far, lookup::distance(sizes(longer), base));
        last = far;
    }
    // Packed sequences of many lengths are about as long as the middle one.
    EXPECT_LT(lookup::distance(sizes("forward:b4,hq32,hkv8,sq=loguniform(256,4096),d128,packed"), base), 0.6);
    EXPECT_EQ(lookup::differences(problem("forward:b4,sq9,packed"), problem("forward:b4,sq=loguniform(3,9),skv9,packed")), differs_seq_q);
    EXPECT_EQ(lookup::differences(problem("forward:b4,sq9,packed"), problem("forward:b4,sq9")), differs_packed);
    // A full machine does not get fuller; an idle one does.
    EXPECT_LT(lookup::distance(sizes("forward:b64,hq32,sq1024"), sizes("forward:b256,hq32,sq1024")), 0.2);
    EXPECT_GT(lookup::distance(sizes("forward:b1,hq1,sq1024"), sizes("forward:b4,hq1,sq1024")), 1.9);
    EXPECT_EQ(lookup::differences(problem("forward:b4,hq8,hkv2,sq9"), problem("forward:b5,hq8,hkv4,sq9,skv10")), differs_batch | differs_heads | differs_seq_kv);
}

TEST_F(IndexTest, every_line_of_the_shipped_winners_parses_is_correct_and_stands_once) {
    size_t lines = 0;
    for (const EmbeddedText* file = embedded_defaults; file->name; ++file) {
        const std::string text = file->text;
        for (size_t begin = 0; begin < text.size();) {
            const size_t end = std::min(text.find('\n', begin), text.size());
            const std::string line = text.substr(begin, end - begin);
            begin = end + 1;
            if (line.empty()) continue;
            ++lines;
            const Result<MeasurementRow> row = parse_json_line(line);
            EXPECT_TRUE(row.ok()) << file->name << ": " << line << ": " << row.status().message();
            if (row.ok()) {
                EXPECT_EQ(row->measurement.outcome, Outcome::correct) << file->name << ": " << line;
            }
        }
    }
    EXPECT_EQ(default_rows().size(), lines);
    EXPECT_EQ(lookup::rows_of(default_rows()).entries.size(), lines);
}

}  // namespace
}  // namespace tilewright
