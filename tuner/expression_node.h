// The tree of an expression, between its reading (expression_parser.cpp) and its evaluation (expression.cpp).
#pragma once
#include "tuner/expression.h"

namespace tilewright {

enum class Operator {
    constant, name, list,                                      // list: a list or tuple of the operands
    negate, plus, logical_not,                                 // of one operand
    add, subtract, multiply, divide, floor_divide, remainder, power,
    equal, not_equal, less, less_equal, greater, greater_equal, in, not_in,
    logical_and, logical_or, choose,                           // choose: the second operand if the first is true, else the third
    abs, min, max, len, to_list, range,                        // functions of the operands
};

struct Expression::Node {
    Operator what = Operator::constant;
    ExpressionValue value;     // of a constant
    size_t place = 0;          // of a name
    std::vector<Node> operands;
};

// invalid_argument as Expression::parse. `uses` gets the places of the names that occur.
Result<Expression::Node> parse_expression(std::string_view text, std::span<const std::string> names, std::vector<size_t>& uses);

}  // namespace tilewright
