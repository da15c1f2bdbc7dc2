// The float64 reference against answers by hand, and against its own definition written out once more.
#include "verify/reference.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "verify/workload.h"

namespace tilewright {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Problem small(int64_t seq_q, int64_t seq_kv) {
    Problem p;
    p.seq_q = seq_q, p.seq_kv = seq_kv, p.head_dim = p.head_dim_v = 1, p.dtype = DType::fp32;
    return p;
}

// Q = 0, v_j = j, scale 1.
Workload counting(const Problem& p) {
    WorkloadOptions options;
    options.scale = 1;
    Workload w = make_workload(p, options);
    w.fill(w.query, 0);
    for (int64_t j = 0; j < p.seq_kv; ++j) w.set(w.value, 0, 0, j, 0, double(j));
    return w;
}

Answer answer(const Workload& w) { return reference_forward(w.inputs(), all_rows(w.problem), 1); }

TEST(Reference, RowsThatSeeNothingAreZeroWithAnLseOfMinusInfinity) {
    Problem p = small(5, 2);
    p.window_right = 0;
    Answer a = answer(counting(p));
    EXPECT_THAT(a.out, testing::ElementsAre(0, 0, 0, 0, 0.5));
    EXPECT_THAT(a.lse, testing::ElementsAre(-infinity, -infinity, -infinity, 0, testing::DoubleNear(std::log(2), 1e-15)));
}

TEST(Reference, TheCausalDiagonalEndsAtTheLastKeyUnlessTopLeftIsAsked) {
    Problem p = small(2, 5);
    p.window_right = 0;
    EXPECT_THAT(answer(counting(p)).out, testing::ElementsAre(1.5, 2));
    p.alignment = Alignment::top_left;
    Answer a = answer(counting(p));
    EXPECT_THAT(a.out, testing::ElementsAre(0, 0.5));
    EXPECT_THAT(a.lse, testing::ElementsAre(0, testing::DoubleNear(std::log(2), 1e-15)));
}

TEST(Reference, WindowsAreInclusive) {
    Problem p = small(6, 6);
    p.window_left = 2, p.window_right = 0;
    EXPECT_THAT(answer(counting(p)).out, testing::ElementsAre(0, 0.5, 1, 2, 3, 4));
    p.window_left = 0, p.window_right = 1;
    EXPECT_THAT(answer(counting(p)).out, testing::ElementsAre(0.5, 1.5, 2.5, 3.5, 4.5, 5));
}

TEST(Reference, ABiasOfMinusInfinityHidesAndTheLowestFiniteOneDoesNot) {
    Problem p = small(2, 4);
    p.bias = true;
    Workload w = counting(p);
    for (int64_t j = 0; j < 4; ++j) w.set(w.bias, 0, 0, 0, j, -infinity), w.set(w.bias, 0, 0, 1, j, -std::numeric_limits<float>::max());
    Answer a = answer(w);
    EXPECT_THAT(a.out, testing::ElementsAre(0, 1.5));
    EXPECT_EQ(a.lse[0], -infinity);
    EXPECT_TRUE(std::isfinite(a.lse[1]));
    w.set(w.value, 0, 0, 2, 0, infinity);  // hidden for row 0, seen by row 1
    EXPECT_EQ(answer(w).out[0], 0);
    EXPECT_EQ(answer(w).out[1], infinity);
}

TEST(Reference, TheSinkTakesWeightAndHasNoValue) {
    Problem p = small(1, 3);
    p.sink = true;
    Workload w = counting(p);
    w.set(w.sink, 0, 0, 0, 0, 1);
    Answer a = answer(w);
    EXPECT_NEAR(a.out[0], 3 / (3 + std::exp(1)), 1e-15);
    EXPECT_NEAR(a.lse[0], std::log(3 + std::exp(1)), 1e-15);
    p.seq_kv = 0;
    w = counting(p);
    w.set(w.sink, 0, 0, 0, 0, 1);
    EXPECT_EQ(answer(w).out[0], 0);
    EXPECT_EQ(answer(w).lse[0], 1);
}

TEST(Reference, AlibiFallsWithTheDistanceOnBothSides) {
    Problem p = small(2, 3);
    p.alibi = true;
    Workload w = counting(p);
    w.set(w.slope, 0, 0, 0, 0, 0.5);
    Answer a = answer(w);
    EXPECT_NEAR(a.lse[1], 0.680270, 5e-7);
    EXPECT_NEAR(a.lse[0], std::log(1 + 2 * std::exp(-0.5)), 1e-15);  // row 0 is aligned with key 1
}

TEST(Reference, NanInAVisibleScoreReachesItsRowAndNoOther) {
    Problem p = small(3, 3);
    p.window_right = 0;
    Workload w = counting(p);
    w.set(w.key, 0, 0, 2, 0, NAN);
    Answer a = answer(w);
    EXPECT_THAT(a.out, testing::ElementsAre(0, 0.5, testing::IsNan()));
    EXPECT_TRUE(std::isnan(a.lse[2]));
}

TEST(Reference, ScoresOfAnyMagnitudeGetTheRealSoftmax) {
    Problem p = small(1, 3);
    p.bias = true;
    Workload w = counting(p);
    for (double magnitude : {1e30, -1e30}) {
        for (int64_t j = 0; j < 3; ++j) w.set(w.bias, 0, 0, 0, j, magnitude);
        EXPECT_EQ(answer(w).out[0], 1);
        EXPECT_EQ(answer(w).lse[0], double(float(magnitude)));
    }
}

// The definition once more, a cell at a time, for a problem that uses everything.
TEST(Reference, EverythingTogetherFollowsTheDefinition) {
    Problem p;
    p.batch = 2, p.heads_q = 4, p.heads_kv = 2, p.seq_q = 7, p.seq_kv = 9, p.head_dim = 5, p.head_dim_v = 3, p.dtype = DType::fp32;
    p.window_left = 4, p.window_right = 1, p.softcap = p.bias = p.alibi = p.sink = true;
    WorkloadOptions options;
    options.layout = Layout::transposed;
    options.broadcast_bias = {true, false, false, false};
    options.softcap = 2;
    Workload w = make_workload(p, options);
    Answer a = answer(w);
    size_t row = 0;
    for (const RowIndex& index : all_rows(p)) {
        auto [b, h, i] = index;
        double sum = std::exp(w.get(w.sink, 0, h, 0, 0)), out = 0;
        for (int64_t j = std::max<int64_t>(0, i + 2 - 4); j <= std::min<int64_t>(8, i + 2 + 1); ++j) {
            double dot = 0;
            for (int64_t d = 0; d < 5; ++d) dot += w.get(w.query, b, h, i, d) * w.get(w.key, b, h / 2, j, d);
            double s = 2 * std::tanh(dot * double(w.scale) / 2) + w.get(w.bias, b, h, i, j) - w.get(w.slope, 0, h, 0, 0) * double(std::abs(i + 2 - j));
            sum += std::exp(s);
            out += std::exp(s) * w.get(w.value, b, h / 2, j, 1);
        }
        EXPECT_NEAR(a.out[row * 3 + 1], out / sum, 1e-14);
        EXPECT_NEAR(a.lse[row], std::log(sum), 1e-14);
        ++row;
    }
}

TEST(Reference, AnyNumberOfThreadsAndAnySelectionOfRowsGivesTheSameBits) {
    Problem p = small(100, 50);
    p.batch = 3, p.heads_q = 2, p.heads_kv = 2, p.head_dim = 8;
    Workload w = make_workload(p);
    Answer all = answer(w);
    EXPECT_EQ(reference_forward(w.inputs(), all_rows(p), 3).out, all.out);
    std::vector<RowIndex> rows = sample_rows(p, 40, 7);
    ASSERT_EQ(rows.size(), 40u);
    Answer some = reference_forward(w.inputs(), rows, 2);
    for (size_t r = 0; r < rows.size(); ++r) EXPECT_EQ(some.lse[r], all.lse[size_t((rows[r].batch * 2 + rows[r].head) * 100 + rows[r].query)]);
}

TEST(Naive, IsTheReferenceToTheElementTypesPrecision) {
    for (DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
        Problem p = small(20, 30);
        p.head_dim = p.head_dim_v = 16, p.dtype = dtype, p.window_right = 0;
        Workload w = make_workload(p);
        Answer reference = answer(w), naive = naive_forward(w.inputs(), all_rows(p), 1);
        double error = 0;
        for (size_t i = 0; i < naive.out.size(); ++i) error = std::max(error, std::abs(naive.out[i] - reference.out[i]));
        double unit = dtype == DType::fp32 ? 1e-7 : dtype == DType::fp16 ? 0.5e-3 : 4e-3;
        EXPECT_LT(error, 4 * unit);
        EXPECT_GT(error, unit / 20);
    }
}

TEST(Rows, TheSampleHoldsTheFirstAndTheLastQueryAndNoRowTwice) {
    Problem p = small(1000, 1000);
    p.batch = 4;
    std::vector<RowIndex> rows = sample_rows(p, 64, 1);
    ASSERT_EQ(rows.size(), 64u);
    bool first = false, last = false;
    for (size_t r = 0; r < rows.size(); ++r) {
        first |= rows[r].query == 0, last |= rows[r].query == 999;
        if (r == 0) continue;
        EXPECT_LT(rows[r - 1].batch * 1000 + rows[r - 1].query, rows[r].batch * 1000 + rows[r].query);
    }
    EXPECT_TRUE(first && last);
    EXPECT_EQ(sample_rows(small(3, 3), 64, 1).size(), 3u);
}

}  // namespace
}  // namespace tilewright
