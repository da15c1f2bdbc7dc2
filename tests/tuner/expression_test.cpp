// Conditions of T1 files: what Python would say.
#include "tuner/expression.h"

#include <gmock/gmock.h>

namespace tilewright {
namespace {

using testing::HasSubstr;
using Kind = ExpressionValue::Kind;

const std::vector<std::string> names = {"a", "b", "text"};

ExpressionValue value_of(const std::string& text) {
    const auto expression = Expression::parse(text, names);
    EXPECT_TRUE(expression.ok()) << expression.status().message();
    const ExpressionValue values[] = {6.0, 4.0, ExpressionValue(std::string("row"))};
    return expression.ok() ? expression->evaluate(values) : ExpressionValue();
}

double number_of(const std::string& text) {
    const ExpressionValue value = value_of(text);
    EXPECT_EQ(value.kind, Kind::number) << text << ": " << value.text;
    return value.number;
}

std::string fault_of(const std::string& text) {
    const ExpressionValue value = value_of(text);
    EXPECT_EQ(value.kind, Kind::fault) << text;
    return value.text;
}

TEST(Expression, BindsAsPythonDoes) {
    EXPECT_EQ(number_of("2 + 3 * 4"), 14);
    EXPECT_EQ(number_of("-2 ** 2"), -4);
    EXPECT_EQ(number_of("2 ** 3 ** 2"), 512);
    EXPECT_EQ(number_of("2 ** -1"), 0.5);
    EXPECT_EQ(number_of("10 - 4 - 3"), 3);
    EXPECT_EQ(number_of("7 // 2 * 2"), 6);
    EXPECT_EQ(number_of("-7 // 2"), -4);
    EXPECT_EQ(number_of("-7 % 3"), 2);
    EXPECT_EQ(number_of("7 % -3"), -2);
    EXPECT_EQ(number_of("7 / 2"), 3.5);
    EXPECT_EQ(number_of("not 1 == 2"), 1);
    EXPECT_EQ(number_of("not not 3"), 1);
    EXPECT_EQ(number_of("1 or 0 and 0"), 1);
    EXPECT_EQ(number_of("(1 or 0) and 0"), 0);
    EXPECT_EQ(number_of("1 if a == 5 else 2 if a == 6 else 3"), 2);
}

TEST(Expression, ComparesInChainsAndLooksIntoLists) {
    EXPECT_EQ(number_of("1 < b < a <= 6"), 1);
    EXPECT_EQ(number_of("1 < b > 5"), 0);
    EXPECT_EQ(number_of("a in [2, 4, 6]"), 1);
    EXPECT_EQ(number_of("(a, b) not in ((6, 4), (1, 1))"), 0);
    EXPECT_EQ(number_of("(a, b) in [(6, b)]"), 1);
    EXPECT_EQ(number_of("text == 'row' and text != \"column\""), 1);
    EXPECT_EQ(number_of("text in ('column',)"), 0);
    EXPECT_EQ(number_of("a == text"), 0);
    EXPECT_EQ(number_of("'a' < 'b'"), 1);
}

TEST(Expression, KnowsAFewFunctions) {
    EXPECT_EQ(number_of("max(a, b, 5) - min([a, b])"), 2);
    EXPECT_EQ(number_of("abs(b - a)"), 2);
    EXPECT_EQ(number_of("len(list(range(1, 10, 3)))"), 3);
    EXPECT_EQ(number_of("3 in range(4)"), 1);
    EXPECT_EQ(number_of("len(range(5, 0, -2))"), 3);
    EXPECT_EQ(number_of("True + False"), 1);
    EXPECT_EQ(value_of("a and []").kind, Kind::list);
}

TEST(Expression, NamesTheParametersThatItUses) {
    EXPECT_THAT(Expression::parse("b > 1 or a * b > 2", names)->uses(), testing::ElementsAre(0, 1));
    EXPECT_THAT(Expression::parse("1", names)->uses(), testing::IsEmpty());
}

TEST(Expression, EvaluatesWhatDecidesAndNoMore) {
    EXPECT_EQ(number_of("b == 0 or a % (b - 4 + 1) == 0"), 1);
    EXPECT_EQ(number_of("a == 6 or a / 0 > 1"), 1);
}

TEST(Expression, SaysWhatCannotBeEvaluated) {
    EXPECT_THAT(fault_of("a % (b - 4)"), HasSubstr("division by zero"));
    EXPECT_THAT(fault_of("a // 0"), HasSubstr("division by zero"));
    EXPECT_THAT(fault_of("a < text"), HasSubstr("order"));
    EXPECT_THAT(fault_of("a + text"), HasSubstr("arithmetic"));
    EXPECT_THAT(fault_of("-text"), HasSubstr("sign"));
    EXPECT_THAT(fault_of("a in b"), HasSubstr("'in' needs a list"));
    EXPECT_THAT(fault_of("min()"), HasSubstr("min and max"));
    EXPECT_THAT(fault_of("range(1, 1e9)"), HasSubstr("65536"));
    EXPECT_THAT(fault_of("range(1, 2, 0)"), HasSubstr("not 0"));
}

TEST(Expression, SaysWhatCannotBeRead) {
    const auto message = [](const std::string& text) { return Expression::parse(text, names).status().message(); };
    EXPECT_THAT(message("a <"), HasSubstr("something is missing"));
    EXPECT_THAT(message("a b"), HasSubstr("character 3: cannot be read"));
    EXPECT_THAT(message("c > 1"), HasSubstr("'c' is neither a parameter"));
    EXPECT_THAT(message("(a, b"), HasSubstr("')' is missing"));
    EXPECT_THAT(message("__import__('os')"), HasSubstr("neither a parameter nor a known function"));
    EXPECT_THAT(message("a if b"), HasSubstr("'else' is missing"));
    EXPECT_THAT(message("'a"), HasSubstr("does not end"));
    EXPECT_THAT(message("1x"), HasSubstr("not a number"));
    EXPECT_THAT(message("a = 1"), HasSubstr("cannot be read"));
    EXPECT_THAT(message(std::string(10000, '(')), HasSubstr("deep"));
    EXPECT_THAT(message(std::string(10000, '-')), HasSubstr("signs"));
    EXPECT_THAT(message(""), HasSubstr("missing"));
}

}  // namespace
}  // namespace tilewright
