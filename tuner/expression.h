// Conditions of T1 space files: Python expressions over tuning parameters, read once and evaluated many times.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/status.h"

namespace tilewright {

// What an expression can be: a number (True is 1), a text, a list or tuple, or a fault, whose text says why it is none of these.
struct ExpressionValue {
    enum class Kind { number, text, list, fault };
    ExpressionValue(double value = 0) : number(value) {}                                              // NOLINT: a number is a value
    explicit ExpressionValue(std::string words) : kind(Kind::text), text(std::move(words)) {}
    explicit ExpressionValue(std::vector<ExpressionValue> members) : kind(Kind::list), items(std::move(members)) {}

    Kind kind = Kind::number;
    double number = 0;
    std::string text;
    std::vector<ExpressionValue> items;
};
// As Python has it: neither 0 nor empty. False for a fault.
bool is_true(const ExpressionValue& value);

// Immutable, so safe to share between threads.
class Expression {
public:
    // Literals (numbers, texts, True, False, lists, tuples), `names`, + - * / // % **, chained comparisons, in, not in, and, or, not, a if b else c,
    // parentheses, and the functions abs, min, max, len, list and range. invalid_argument: anything else, and at which character.
    static Result<Expression> parse(std::string_view text, std::span<const std::string> names);

    // With one value for each name. A fault says what cannot be: division by zero, numbers compared with texts.
    ExpressionValue evaluate(std::span<const ExpressionValue> values) const;
    // Which names it speaks of, as places in the list that it was read with, ascending.
    std::span<const size_t> uses() const { return uses_; }

    struct Node;

private:
    std::shared_ptr<const Node> root_;
    std::vector<size_t> uses_;
};

}  // namespace tilewright
