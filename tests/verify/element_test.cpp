// Element types: every 16-bit pattern survives, and rounding is to nearest even, once.
#include "verify/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace tilewright {
namespace {

class Sixteen : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, Sixteen, testing::Values(DType::fp16, DType::bf16), [](const auto& test) { return test.param == DType::fp16 ? "fp16" : "bf16"; });

TEST_P(Sixteen, EveryPatternDecodesAndEncodesToItself) {
    for (uint32_t pattern = 0; pattern < 65536; ++pattern) {
        uint16_t bits = uint16_t(pattern), again = 0;
        double value = load_element(GetParam(), &bits);
        store_element(GetParam(), &again, value);
        if (std::isnan(value)) {
            EXPECT_TRUE(std::isnan(load_element(GetParam(), &again))) << pattern;
        } else {
            EXPECT_EQ(again, bits) << value;
        }
    }
}

TEST_P(Sixteen, BetweenTwoNeighboursTheNearerWinsAndTheMiddleGoesToTheEvenOne) {
    for (uint32_t pattern = 0; pattern + 1 < 0x7c00; ++pattern) {
        uint16_t low = uint16_t(pattern), high = uint16_t(pattern + 1);
        double a = load_element(GetParam(), &low), b = load_element(GetParam(), &high), middle = (a + b) / 2;
        EXPECT_EQ(round_to(GetParam(), middle), pattern % 2 ? b : a);
        EXPECT_EQ(round_to(GetParam(), std::nextafter(middle, a)), a);
        EXPECT_EQ(round_to(GetParam(), -std::nextafter(middle, b)), -b);
    }
}

TEST_P(Sixteen, WhatIsTooLargeBecomesInfinite) {
    double largest = largest_finite(GetParam()), step = largest * epsilon(GetParam()) / 2;
    EXPECT_EQ(round_to(GetParam(), largest), largest);
    EXPECT_EQ(round_to(GetParam(), largest + 0.4 * step), largest);
    EXPECT_EQ(round_to(GetParam(), -(largest + step)), -std::numeric_limits<double>::infinity());
}

TEST(Element, StridedLoadsReadEveryNthElement) {
    float data[] = {1, 2, 3, 4, 5, 6}, to[3];
    load_elements(DType::fp32, data, 2, 3, to);
    EXPECT_EQ(to[0], 1);
    EXPECT_EQ(to[2], 5);
    load_elements(DType::fp32, data + 4, 0, 3, to);
    EXPECT_EQ(to[2], 5);
}

}  // namespace
}  // namespace tilewright
