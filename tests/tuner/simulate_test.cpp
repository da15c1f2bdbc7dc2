// Replaying recordings: reading T4 files, and figures that can be computed by hand.
#include <gmock/gmock.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tuner/replay.h"
#include "tuner/spaces.h"
#include "tuner/strategy.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

std::string temporary(const std::string& name) { return testing::TempDir() + "tilewright_" + std::to_string(getpid()) + "_" + name; }

const char* const small_t4 = R"({"schema_version": "1.0.0", "results": [
  {"configuration": {"b": 16, "a": 4, "kind": "x"}, "invalidity": "correct", "measurements": [{"name": "energy", "value": 9}, {"name": "time", "value": 2.5}], "objectives": ["time"]},
  {"configuration": {"b": 2, "a": 4, "kind": "y"}, "invalidity": "compile", "measurements": [], "objectives": ["time"]},
  {"configuration": {"b": 16, "a": 2, "kind": "y"}, "invalidity": "correct", "measurements": [{"name": "time", "value": 1.25}], "objectives": ["time"]}]})";

TEST(T4, IsReadPlainAndCompressed) {
    const std::string plain = temporary("plain.json"), packed = temporary("packed.json.gz");
    std::ofstream(plain) << small_t4;
    const gzFile file = gzopen(packed.c_str(), "wb");
    gzputs(file, small_t4);
    gzclose(file);
    for (const std::string& path : {plain, packed}) {
        const auto recorded = read_t4(path);
        ASSERT_TRUE(recorded.ok()) << recorded.status().message();
        EXPECT_THAT(recorded->costs, testing::ElementsAre(2.5, failed_cost, 1.25));
        EXPECT_THAT(recorded->outcomes, testing::ElementsAre("correct", "compile", "correct"));
        for (const SearchParameter& parameter : recorded->space.parameters()) {
            const std::vector<double> expected = parameter.name == "a"   ? std::vector<double>{2, 4}
                                                 : parameter.name == "b" ? std::vector<double>{2, 16}
                                                                         : std::vector<double>{};
            EXPECT_EQ(parameter.positions, expected) << parameter.name;
        }
        std::filesystem::remove(path);
    }
}

TEST(T4, OfAConfigurationThatIsThereTwiceTheLaterResultCounts) {
    const std::string path = temporary("twice.json");
    std::ofstream(path) << R"({"results": [
      {"configuration": {"a": 1, "b": 2}, "invalidity": "correct", "measurements": [{"name": "time", "value": 5}]},
      {"configuration": {"a": 2, "b": 2}, "invalidity": "correct", "measurements": [{"name": "time", "value": 7}]},
      {"configuration": {"b": 2, "a": 1}, "invalidity": "correct", "measurements": [{"name": "time", "value": 4}]},
      {"configuration": {"a": 2, "b": 2}, "invalidity": "runtime", "measurements": []}]})";
    const auto recorded = read_t4(path);
    ASSERT_TRUE(recorded.ok()) << recorded.status().message();
    EXPECT_THAT(recorded->costs, testing::ElementsAre(4, failed_cost));
    EXPECT_THAT(recorded->outcomes, testing::ElementsAre("correct", "runtime"));
    std::filesystem::remove(path);
}

TEST(T4, WrittenFromARecordedSpaceComesBackWithItsPredictions) {
    RecordedSpace written = test::bowl();
    std::vector<double> prior;
    for (uint32_t index = 0; index < written.space.size(); ++index) prior.push_back(1 + index % 7);
    ASSERT_TRUE(written.space.set_guidance(prior, {5, 3}).ok());
    for (const char* name : {"written.json", "written.json.gz"}) {
        const std::string path = temporary(name);
        ASSERT_TRUE(write_t4(written, path).ok());
        const auto read = read_t4(path);
        ASSERT_TRUE(read.ok()) << read.status().message();
        EXPECT_EQ(read->costs, written.costs);
        EXPECT_EQ(read->outcomes, written.outcomes);
        EXPECT_THAT(read->space.prior(), testing::ElementsAreArray(prior));
        EXPECT_THAT(read->space.seeds(), testing::ElementsAre(5, 3));
        std::filesystem::remove(path);
    }
    EXPECT_THAT(write_t4(written, "/nowhere/x.json").message(), HasSubstr("cannot write '/nowhere/x.json'"));
}

TEST(T4, SaysWhatIsWrongWithAFile) {
    const std::string path = temporary("bad.json");
    const auto message = [&](const std::string& text) {
        std::ofstream(path) << text;
        return read_t4(path).status().message();
    };
    EXPECT_THAT(read_t4("/nowhere/x.json").status().message(), HasSubstr("cannot read '/nowhere/x.json'"));
    EXPECT_THAT(message("{"), HasSubstr("is not JSON"));
    EXPECT_THAT(message("{}"), HasSubstr("not a T4 results file"));
    EXPECT_THAT(message("[1]"), HasSubstr("not a T4 results file"));
    EXPECT_THAT(message(R"({"results": []})"), HasSubstr("holds no results"));
    EXPECT_THAT(message(R"({"results": [{"configuration": {"a": 1}, "invalidity": "correct", "measurements": []}, {"configuration": {"b": 1}}]})"),
                HasSubstr("bad.json"));
    std::filesystem::remove(path);
}

TEST(Simulation, OfAnExhaustiveSearchEndsAtTheOptimum) {
    const RecordedSpace recorded = test::bowl();
    const auto result = simulate(recorded, {.strategy = "exhaustive", .evaluations = 100000, .repeats = 2});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->rows.back().evaluations, static_cast<int>(recorded.space.size()));
    EXPECT_EQ(result->rows.back().median, 1.0);
    EXPECT_EQ(result->rows.back().p10, 1.0);
    EXPECT_EQ(result->rows[0].evaluations, 20);
}

TEST(Simulation, ScoresRandomSearchAtAboutZeroAndOthersAbove) {
    const RecordedSpace recorded = test::bowl();
    const auto random = simulate(recorded, {.strategy = "random", .evaluations = 200, .repeats = 400});
    const auto model = simulate(recorded, {.strategy = "model", .evaluations = 100, .repeats = 20});
    ASSERT_TRUE(random.ok() && model.ok());
    EXPECT_NEAR(random->score, 0, 0.1);
    EXPECT_GT(model->score, 0.3);
}

TEST(Simulation, GivesTheSameFiguresOnOneThreadAndOnMany) {
    const RecordedSpace recorded = test::bowl();
    const auto one = simulate(recorded, {.evaluations = 40, .repeats = 6, .threads = 1}),
               many = simulate(recorded, {.evaluations = 40, .repeats = 6, .threads = 3});
    ASSERT_TRUE(one.ok() && many.ok());
    EXPECT_EQ(one->score, many->score);
    EXPECT_EQ(one->rows.back().p10, many->rows.back().p10);
}

TEST(Simulation, RefusesNonsense) {
    RecordedSpace recorded = test::bowl();
    EXPECT_THAT(simulate(recorded, {.evaluations = 0}).status().message(), HasSubstr("evaluations is 0"));
    EXPECT_THAT(simulate(recorded, {.repeats = -1}).status().message(), HasSubstr("repeats is -1"));
    EXPECT_THAT(simulate(recorded, {.strategy = "magic"}).status().message(), HasSubstr("unknown strategy 'magic'"));
    for (double& cost : recorded.costs) cost = failed_cost;
    EXPECT_THAT(simulate(recorded, {}).status().message(), HasSubstr("no configuration that worked"));
}

}  // namespace
}  // namespace tilewright
