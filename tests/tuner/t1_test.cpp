// T1 space files: reading them, with results and without, and writing our own.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/scratch_directory.h"
#include "tuner/replay.h"
#include "tuner/strategy.h"
#include "tuner/tuning_space.h"

namespace tilewright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class T1 : public testing::Test {
protected:
    std::string file(const std::string& name, const std::string& text) const {
        std::ofstream(scratch_.file(name)) << text;
        return scratch_.file(name);
    }
    static std::string space(const std::string& parameters, const std::string& conditions = "") {
        return R"({"General": {"BenchmarkName": "test"}, "ConfigurationSpace": {"TuningParameters": [)" + parameters + R"(], "Conditions": [)" + conditions + R"(]}})";
    }

    ScratchDirectory scratch_ = *ScratchDirectory::create();
};

const char* const two_parameters = R"({"Name": "a", "Type": "int", "Values": "[4, 1, 2]", "Default": 1}, {"Name": "kind", "Type": "string", "Values": "['x', 'y']"})";
const char* const one_condition = R"({"Expression": "a > 1 or kind == 'x'", "Parameters": ["a", "kind"]})";

TEST_F(T1, GivesParametersInOrderAndWhatTheConditionsLeave) {
    const auto read = read_t1(file("t1", space(two_parameters, one_condition)));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->size(), 5u);
    EXPECT_THAT(read->parameters()[0].labels, ElementsAre("1", "2", "4"));
    EXPECT_THAT(read->parameters()[0].positions, ElementsAre(1, 2, 4));
    EXPECT_THAT(read->parameters()[1].labels, ElementsAre("x", "y"));
    EXPECT_THAT(read->parameters()[1].positions, testing::IsEmpty());
}

TEST_F(T1, SaysWhatIsWrongWithAFile) {
    const auto message = [&](const std::string& text) { return read_t1(file("t1", text)).status().message(); };
    EXPECT_THAT(read_t1("/nowhere").status().message(), HasSubstr("cannot read"));
    EXPECT_THAT(message("{"), HasSubstr("not JSON"));
    EXPECT_THAT(message("{}"), HasSubstr("not a T1 file"));
    EXPECT_THAT(message(R"({"results": []})"), HasSubstr("ConfigurationSpace"));
    EXPECT_THAT(message(space(R"({"Name": "a", "Values": "[]"})")), HasSubstr("'a'"));
    EXPECT_THAT(message(space(R"({"Name": "a", "Values": "[1, 'x']"})")), HasSubstr("neither all numbers nor all texts"));
    EXPECT_THAT(message(space(R"({"Name": "a", "Values": "[1, 1]"})")), HasSubstr("ascending"));
    EXPECT_THAT(message(space(R"json({"Name": "a", "Values": "open('x')"})json")), HasSubstr("open"));
    EXPECT_THAT(message(space(two_parameters, R"({"Expression": "b > 1"})")), HasSubstr("'b'"));
}

TEST_F(T1, WithResultsSaysWhatIsMissing) {
    const std::string t1 = file("t1", space(two_parameters, one_condition));
    const auto results = [&](const std::string& list) { return file("t4", R"({"results": [)" + list + "]}"); };
    const std::string first = R"({"configuration": {"kind": "y", "a": 4, "fixed": 7}, "invalidity": "correct", "measurements": [{"name": "time", "value": 3}]})";
    const auto read = read_t4(results(first), t1);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->space.size(), 5u);
    EXPECT_EQ(read->missing, 4u);
    EXPECT_THAT(read->costs, ElementsAre(failed_cost, failed_cost, failed_cost, failed_cost, 3));
    EXPECT_EQ(read->outcomes[0], "missing");
    EXPECT_EQ(read->outcomes[4], "correct");

    // A parameter of one value need not be in the results.
    const std::string fixed = file("t1_fixed", space(std::string(two_parameters) + R"(, {"Name": "stages", "Type": "int", "Values": "[1]"})", one_condition));
    EXPECT_EQ(read_t4(results(first), fixed)->missing, 4u);

    const auto message = [&](const std::string& other) { return read_t4(results(first + ", " + other), t1).status().message(); };
    EXPECT_THAT(message(R"({"configuration": {"kind": "y", "a": 1, "fixed": 7}, "invalidity": "correct", "measurements": []})"), HasSubstr("does not fulfil"));
    EXPECT_THAT(message(R"({"configuration": {"kind": "z", "a": 1, "fixed": 7}, "invalidity": "correct", "measurements": []})"), HasSubstr("'kind' is \"z\""));
    EXPECT_THAT(message(R"({"configuration": {"kind": "x", "a": 3, "fixed": 7}, "invalidity": "correct", "measurements": []})"), HasSubstr("'a' is 3"));
    EXPECT_THAT(message(R"({"configuration": {"kind": "x", "a": 2, "fixed": 8}, "invalidity": "correct", "measurements": []})"), HasSubstr("differ in 'fixed'"));
    EXPECT_THAT(message(R"({"configuration": {"kind": "x", "fixed": 7}, "invalidity": "correct", "measurements": []})"), HasSubstr("not a T4"));
}

class OwnSpace : public T1, public testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(OwnSpace, ComesBackEqual) {
    const auto& [arch, problem] = GetParam();
    const auto tuning = tuning_space(*parse_problem(problem), *find_arch(arch), {});
    ASSERT_TRUE(tuning.ok()) << tuning.status().message();
    const auto read = read_t1(file("t1", to_t1(*tuning)));
    ASSERT_TRUE(read.ok()) << read.status().message();
    ASSERT_EQ(read->parameters().size(), tuning->search.parameters().size());
    for (size_t i = 0; i < read->parameters().size(); ++i) {
        EXPECT_EQ(read->parameters()[i].name, tuning->search.parameters()[i].name);
        EXPECT_EQ(read->parameters()[i].positions, tuning->search.parameters()[i].positions);
    }
    ASSERT_EQ(read->size(), tuning->search.size());
    for (uint32_t index = 0; index < read->size(); ++index) ASSERT_TRUE(std::ranges::equal(read->row(index), tuning->search.row(index))) << index;
}
INSTANTIATE_TEST_SUITE_P(Of, OwnSpace,
                         testing::Values(std::pair("cpu", "forward:b1,hq4,hkv1,sq384,skv384,d64,fp32,causal"),
                                         std::pair("sm_90a", "forward:b4,hq16,hkv16,sq4096,skv4096,d128,bf16"),
                                         std::pair("gfx942", "forward:b4,hq16,hkv4,sq4096,skv4096,d128,bf16"),
                                         std::pair("sm_80", "decode:b8,hq32,hkv8,sq1,skv8192,d128,bf16")),
                         [](const auto& each) { return std::string(each.param.first); });

}  // namespace
}  // namespace tilewright
