// What every strategy must keep: each configuration once, the same seed the same proposals, failures survived, any budget.
#include "tuner/strategy.h"

#include <gmock/gmock.h>

#include <set>

#include "tuner/spaces.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

class EveryStrategy : public testing::TestWithParam<std::string> {
protected:
    std::vector<uint32_t> proposals(uint64_t seed, size_t count, size_t in_flight = 1) {
        Search search(recorded_.space, *make_strategy(GetParam()), seed);
        std::vector<uint32_t> list;
        size_t told = 0;
        while (list.size() < count) {
            const auto index = search.propose();
            if (!index) break;
            list.push_back(*index);
            if (list.size() - told >= in_flight) {
                search.tell(list[told], recorded_.costs[list[told]]);
                ++told;
            }
        }
        return list;
    }
    const RecordedSpace recorded_ = test::bowl();
};

TEST_P(EveryStrategy, ProposesEachConfigurationExactlyOnce) {
    const auto list = proposals(1, recorded_.space.size() + 1);
    EXPECT_EQ(list.size(), recorded_.space.size());
    EXPECT_EQ(std::set(list.begin(), list.end()).size(), list.size());
}

TEST_P(EveryStrategy, RepeatsItselfWithTheSameSeed) { EXPECT_EQ(proposals(7, 60), proposals(7, 60)); }

TEST_P(EveryStrategy, AFirstPartOfALongSearchIsTheShortSearch) {
    auto longer = proposals(7, 60);
    longer.resize(25);
    EXPECT_EQ(proposals(7, 25), longer);
}

TEST_P(EveryStrategy, MayBeAskedForSeveralBeforeItIsTold) {
    const auto list = proposals(3, recorded_.space.size(), 8);
    EXPECT_EQ(std::set(list.begin(), list.end()).size(), recorded_.space.size());
}

TEST_P(EveryStrategy, EndsOnASpaceWhereEverythingFails) {
    Search search(recorded_.space, *make_strategy(GetParam()), 1);
    size_t count = 0;
    while (const auto index = search.propose()) {
        search.tell(*index, failed_cost);
        ++count;
    }
    EXPECT_EQ(count, recorded_.space.size());
    EXPECT_FALSE(search.history().best());
}

TEST_P(EveryStrategy, WorksOnASpaceOfOne) {
    const auto space = SearchSpace::create({{"x", {"1"}, {1}}}, {0});
    ASSERT_TRUE(space.ok());
    Search search(*space, *make_strategy(GetParam()), 1);
    EXPECT_EQ(search.propose(), 0u);
    search.tell(0, 5);
    EXPECT_FALSE(search.propose());
}

TEST_P(EveryStrategy, TriesSeedsFirstAndSkipsWhatIsKnown) {
    auto space = SearchSpace::create({{"x", {"1", "2", "4", "8"}, {1, 2, 4, 8}}}, {0, 1, 2, 3}, {}, {2, 1});
    ASSERT_TRUE(space.ok());
    Search search(*space, *make_strategy(GetParam()), 1);
    search.tell(2, 1.0);
    EXPECT_EQ(search.propose(), 1u);
}

TEST_P(EveryStrategy, DoesNotDependOnTheUnitOfCost) {
    const auto run = [&](double unit) {
        Search search(recorded_.space, *make_strategy(GetParam()), 5);
        std::vector<uint32_t> list;
        for (int i = 0; i < 60; ++i) {
            list.push_back(*search.propose());
            search.tell(list.back(), recorded_.costs[list.back()] * unit);
        }
        return list;
    };
    EXPECT_EQ(run(1), run(1024));  // a power of two: no rounding
}

std::vector<std::string> names() {
    std::vector<std::string> list;
    for (const StrategyRow& row : strategies()) list.emplace_back(row.name);
    return list;
}
INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, testing::ValuesIn(names()), [](const auto& each) { return each.param; });

TEST(Strategy, ThatLearnsFindsTheBottomOfABowlInATenthOfTheSpace) {
    const RecordedSpace recorded = test::bowl();
    for (const char* name : {"portfolio", "model", "forest", "greedy"}) {
        SimulationOptions options;
        options.strategy = name;
        options.evaluations = static_cast<int>(recorded.space.size()) / 7;
        options.repeats = 20;
        const auto result = simulate(recorded, options);
        ASSERT_TRUE(result.ok());
        EXPECT_GE(result->rows.back().median, 0.95) << name;
    }
}

TEST(Strategy, APriorIsFollowedFirst) {
    const RecordedSpace plain = test::bowl();
    std::vector<double> prior;
    std::vector<uint16_t> rows;
    for (uint32_t i = 0; i < plain.space.size(); ++i) {
        for (const uint16_t value : plain.space.row(i)) rows.push_back(value);
        prior.push_back(std::min(plain.costs[i], 10.0));
    }
    const auto space = SearchSpace::create({plain.space.parameters().begin(), plain.space.parameters().end()}, rows, prior);
    ASSERT_TRUE(space.ok());
    for (const char* name : {"portfolio", "model", "forest"}) {
        Search search(*space, *make_strategy(name), 1);
        EXPECT_EQ(plain.costs[*search.propose()], 1.0) << name;
    }
}

TEST(Strategy, TextNamesOptionsAndUnknownOnesAreRefused) {
    EXPECT_TRUE(make_strategy("genetic:population=30,mutation=0.2").ok());
    EXPECT_THAT(make_strategy("genetics").status().message(), HasSubstr("unknown strategy 'genetics'; known are portfolio, model"));
    EXPECT_THAT(make_strategy("genetic:size=3").status().message(), HasSubstr("no option 'size'; it has population, mutation"));
    EXPECT_THAT(make_strategy("random:x=3").status().message(), HasSubstr("it has none"));
    EXPECT_THAT(make_strategy("genetic:mutation=often").status().message(), HasSubstr("'mutation=often' of strategy 'genetic' is not name=number"));
    EXPECT_THAT(make_strategy("genetic:mutation").status().message(), HasSubstr("not name=number"));
}

}  // namespace
}  // namespace tilewright
