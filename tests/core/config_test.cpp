// A config's canonical JSON.
#include "tilewright/config.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(ConfigJson, RoundTripsEveryField) {
    Config config;
    int next = 3;
    for (const ConfigField& field : config_fields()) config.*field.member = next++;
    Result<Config> again = parse_config(to_json(config));
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(*again, config);
}

TEST(ConfigJson, ListsEveryMember) { EXPECT_EQ(config_fields().size() * sizeof(int), sizeof(Config)); }

TEST(ConfigJson, TakesDefaultsForWhatIsMissing) {
    Config expected;
    expected.block_q = 128;
    EXPECT_EQ(*parse_config(R"({"block_q":128})"), expected);
}

TEST(ConfigJson, NamesWhatIsWrong) {
    EXPECT_NE(parse_config(R"({"block_x":1})").status().message().find("'block_x'"), std::string::npos);
    EXPECT_NE(parse_config(R"({"block_q":1.5})").status().message().find("1.5"), std::string::npos);
    EXPECT_NE(parse_config(R"({"block_q":99999999999})").status().message().find("99999999999"), std::string::npos);
    EXPECT_FALSE(parse_config("[1]").ok());
    EXPECT_FALSE(parse_config("{").ok());
}

}  // namespace
}  // namespace tilewright
