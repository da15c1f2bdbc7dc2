// Evaluating expressions, as Python does.
#include "tuner/expression.h"

#include <algorithm>
#include <cmath>

#include "tuner/expression_node.h"

namespace tilewright {
namespace {

using Value = ExpressionValue;
using List = std::vector<Value>;
using Node = Expression::Node;
using Values = std::span<const Value>;

using Kind = Value::Kind;

Value fault(std::string message) {
    Value value(std::move(message));
    value.kind = Kind::fault;
    return value;
}
Value truth(bool value) { return value ? 1.0 : 0.0; }

bool same(const Value& a, const Value& b) {
    if (a.kind != b.kind) return false;
    return a.kind == Kind::number ? a.number == b.number : a.kind == Kind::text ? a.text == b.text : std::ranges::equal(a.items, b.items, same);
}

// A product over a negative divisor rounds down, and its remainder has the divisor's sign.
Value arithmetic(Operator what, double a, double b) {
    switch (what) {
        case Operator::add: return a + b;
        case Operator::subtract: return a - b;
        case Operator::multiply: return a * b;
        case Operator::power: return std::pow(a, b);
        default: break;
    }
    if (b == 0) return fault("division by zero");
    if (what == Operator::divide) return a / b;
    if (what == Operator::floor_divide) return std::floor(a / b);
    const double rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value compare(Operator what, const Value& a, const Value& b) {
    if (what == Operator::equal || what == Operator::not_equal) return truth(same(a, b) == (what == Operator::equal));
    if (what == Operator::in || what == Operator::not_in) {
        if (b.kind != Kind::list) return fault("'in' needs a list");
        return truth(std::ranges::any_of(b.items, [&](const Value& each) { return same(each, a); }) == (what == Operator::in));
    }
    if (a.kind != b.kind || (a.kind != Kind::number && a.kind != Kind::text)) return fault("numbers have an order among themselves and texts too, but nothing else");
    const int order = a.kind == Kind::text ? a.text.compare(b.text) : a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
    switch (what) {
        case Operator::less: return truth(order < 0);
        case Operator::less_equal: return truth(order <= 0);
        case Operator::greater: return truth(order > 0);
        default: return truth(order >= 0);
    }
}

Value range(const List& arguments) {
    double bounds[3] = {0, 0, 1};
    if (arguments.empty() || arguments.size() > 3) return fault("range takes one to three numbers");
    for (size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].kind != Kind::number || arguments[i].number != std::floor(arguments[i].number)) return fault("range takes whole numbers");
        bounds[arguments.size() == 1 ? 1 : i] = arguments[i].number;
    }
    const auto [begin, end, step] = bounds;
    if (step == 0 || (end - begin) / step > 65536) return fault("a range has at most 65536 members and a step that is not 0");
    List list;
    for (double value = begin; step > 0 ? value < end : value > end; value += step) list.emplace_back(value);
    return Value(std::move(list));
}

Value call(Operator what, List arguments) {
    if (what == Operator::range) return range(arguments);
    if (what == Operator::min || what == Operator::max) {
        if (arguments.size() == 1 && arguments[0].kind == Kind::list) arguments = List(arguments[0].items);
        if (arguments.empty() || !std::ranges::all_of(arguments, [](const Value& each) { return each.kind == Kind::number; }))
            return fault("min and max take numbers");
        return what == Operator::min ? *std::ranges::min_element(arguments, {}, &Value::number) : *std::ranges::max_element(arguments, {}, &Value::number);
    }
    if (arguments.size() != 1) return fault("abs, len and list take one argument");
    const Value& argument = arguments[0];
    if (what == Operator::abs) return argument.kind == Kind::number ? Value(std::fabs(argument.number)) : fault("abs takes a number");
    if (argument.kind != Kind::list) return fault("len and list take a list");
    return what == Operator::len ? Value(static_cast<double>(argument.items.size())) : argument;
}

Value evaluate_node(const Node& node, Values values);

Value evaluate_list(const Node& node, Values values) {
    List list;
    for (const Node& operand : node.operands) {
        list.push_back(evaluate_node(operand, values));
        if (list.back().kind == Kind::fault) return std::move(list.back());
    }
    return node.what == Operator::list ? Value(std::move(list)) : call(node.what, std::move(list));
}

Value evaluate_node(const Node& node, Values values) {
    if (node.what == Operator::constant) return node.value;
    if (node.what == Operator::name) return values[node.place];
    if (node.what == Operator::list || node.what >= Operator::abs) return evaluate_list(node, values);
    Value first = evaluate_node(node.operands[0], values);
    if (first.kind == Kind::fault) return first;
    switch (node.what) {
        case Operator::logical_not: return truth(!is_true(first));
        case Operator::logical_and: return is_true(first) ? evaluate_node(node.operands[1], values) : std::move(first);
        case Operator::logical_or: return is_true(first) ? std::move(first) : evaluate_node(node.operands[1], values);
        case Operator::choose: return evaluate_node(node.operands[is_true(first) ? 1 : 2], values);
        default: break;
    }
    if (node.what == Operator::negate || node.what == Operator::plus) {
        if (first.kind != Kind::number) return fault("a sign needs a number");
        return node.what == Operator::negate ? -first.number : first.number;
    }
    const Node& right = node.operands[1];
    if (right.what == Operator::constant && node.what >= Operator::equal) return compare(node.what, first, right.value);  // long lists are not copied
    const Value second = evaluate_node(right, values);
    if (second.kind == Kind::fault) return second;
    if (node.what >= Operator::equal) return compare(node.what, first, second);
    if (first.kind != Kind::number || second.kind != Kind::number) return fault("arithmetic needs numbers");
    return arithmetic(node.what, first.number, second.number);
}

}  // namespace

bool is_true(const Value& value) {
    return value.kind == Kind::number ? value.number != 0 : value.kind == Kind::text ? !value.text.empty() : !value.items.empty();
}

Result<Expression> Expression::parse(std::string_view text, std::span<const std::string> names) {
    Expression expression;
    TILEWRIGHT_ASSIGN_OR_RETURN(Node root, parse_expression(text, names, expression.uses_));
    std::ranges::sort(expression.uses_);
    expression.uses_.erase(std::unique(expression.uses_.begin(), expression.uses_.end()), expression.uses_.end());
    expression.root_ = std::make_shared<const Node>(std::move(root));
    return expression;
}

ExpressionValue Expression::evaluate(std::span<const ExpressionValue> values) const { return evaluate_node(*root_, values); }

}  // namespace tilewright
