// Reading expressions: one function for each level of precedence, the loosest first.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "tuner/expression_node.h"

namespace tilewright {
namespace {

using Node = Expression::Node;
constexpr int deepest = 100;  // nested parentheses: a file must not exhaust the stack

class Parser {
public:
    Parser(std::string_view text, std::span<const std::string> names, std::vector<size_t>& uses) : text_(text), names_(names), uses_(uses) {}

    Result<Node> all() {
        TILEWRIGHT_ASSIGN_OR_RETURN(Node node, choice());
        skip_spaces();
        if (at_ != text_.size()) return fault("cannot be read from here on");
        return node;
    }

private:
    Status fault(const std::string& what) const {
        return invalid_argument("'" + std::string(text_) + "': character " + std::to_string(at_ + 1) + ": " + what);
    }

    void skip_spaces() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    }
    static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

    // Takes a word or a sign, if it comes next. A word ends where letters end; a sign is not the beginning of a longer one.
    bool take(std::string_view token) {
        skip_spaces();
        const std::string_view rest = text_.substr(at_);
        if (!rest.starts_with(token)) return false;
        const char next = rest.size() > token.size() ? rest[token.size()] : ' ';
        if (is_word(token[0]) ? is_word(next) : (token == "*" || token == "/") && next == token[0]) return false;
        if ((token == "<" || token == ">") && next == '=') return false;
        at_ += token.size();
        return true;
    }

    static Node made(Operator what, Node a) {
        Node node{what, {}, 0, {}};
        node.operands.push_back(std::move(a));
        return node;
    }
    static Node made(Operator what, Node a, Node b) {
        Node node = made(what, std::move(a));
        node.operands.push_back(std::move(b));
        return node;
    }

    Result<Node> choice() {
        if (++depth_ > deepest) return fault("nested more than " + std::to_string(deepest) + " deep");
        TILEWRIGHT_ASSIGN_OR_RETURN(Node node, either());
        if (take("if")) {
            TILEWRIGHT_ASSIGN_OR_RETURN(Node condition, either());
            if (!take("else")) return fault("'else' is missing");
            TILEWRIGHT_ASSIGN_OR_RETURN(Node otherwise, choice());
            node = made(Operator::choose, std::move(condition), std::move(node));
            node.operands.push_back(std::move(otherwise));
        }
        --depth_;
        return node;
    }

    Result<Node> either() {
        TILEWRIGHT_ASSIGN_OR_RETURN(Node node, both());
        while (take("or")) {
            TILEWRIGHT_ASSIGN_OR_RETURN(Node right, both());
            node = made(Operator::logical_or, std::move(node), std::move(right));
        }
        return node;
    }

    Result<Node> both() {
        TILEWRIGHT_ASSIGN_OR_RETURN(Node node, negation());
        while (take("and")) {
            TILEWRIGHT_ASSIGN_OR_RETURN(Node right, negation());
            node = made(Operator::logical_and, std::move(node), std::move(right));
        }
        return node;
    }

    Result<Node> negation() {
        int count = 0;
        while (take("not")) ++count;
        TILEWRIGHT_ASSIGN_OR_RETURN(Node node, comparison());
        if (count == 0) return node;
        node = made(Operator::logical_not, std::move(node));
        return count % 2 == 1 ? std::move(node) : made(Operator::logical_not, std::move(node));
    }

    std::optional<Operator> comparator() {
        constexpr std::pair<const char*, Operator> signs[] = {{"==", Operator::equal},      {"!=", Operator::not_equal}, {"<=", Operator::less_equal},
                                                              {">=", Operator::greater_equal}, {"<", Operator::less},       {">", Operator::greater},
                                                              {"in", Operator::in}};
        for (const auto& [sign, what] : signs)
            if (take(sign)) return what;
        const size_t before = at_;
        if (take("not") && take("in")) return Operator::not_in;
        at_ = before;
        return std::nullopt;
    }

    // a < b < c is a < b and b < c.
    Result<Node> comparison() {
        TILEWRIGHT_ASSIGN_OR_RETURN(Node left, sum());
        std::optional<Node> chain;
        while (const auto what = comparator()) {
            TILEWRIGHT_ASSIGN_OR_RETURN(Node right, sum());
            Node link = made(*what, std::move(left), right);
            chain = chain ? made(Operator::logical_and, *std::move(chain), std::move(link)) : std::move(link);
            left = std::move(right);
        }
        return chain ? *std::move(chain) : std::move(left);
    }

    Result<Node> sum() {
        TILEWRIGHT_ASSIGN_OR_RETURN(Node node, product());
        while (true) {
            const bool is_plus = take("+");
            if (!is_plus && !take("-")) return node;
            TILEWRIGHT_ASSIGN_OR_RETURN(Node right, product());
            node = made(is_plus ? Operator::add : Operator::subtract, std::move(node), std::move(right));
        }
    }

    Result<Node> product() {
        TILEWRIGHT_ASSIGN_OR_RETURN(Node node, sign());
        while (true) {
            const std::optional<Operator> what = take("//")  ? std::optional(Operator::floor_divide)
                                                 : take("*") ? std::optional(Operator::multiply)
                                                 : take("/") ? std::optional(Operator::divide)
                                                 : take("%") ? std::optional(Operator::remainder)
                                                             : std::nullopt;
            if (!what) return node;
            TILEWRIGHT_ASSIGN_OR_RETURN(Node right, sign());
            node = made(*what, std::move(node), std::move(right));
        }
    }

    Result<Node> sign() {
        const bool is_minus = take("-");
        if (!is_minus && !take("+")) return power();
        if (++depth_ > deepest) return fault("more than " + std::to_string(deepest) + " signs");
        TILEWRIGHT_ASSIGN_OR_RETURN(Node node, sign());
        --depth_;
        return made(is_minus ? Operator::negate : Operator::plus, std::move(node));
    }

    Result<Node> power() {
        TILEWRIGHT_ASSIGN_OR_RETURN(Node node, atom());
        if (!take("**")) return node;
        if (++depth_ > deepest) return fault("more than " + std::to_string(deepest) + " powers");
        TILEWRIGHT_ASSIGN_OR_RETURN(Node exponent, sign());
        --depth_;
        return made(Operator::power, std::move(node), std::move(exponent));
    }

    Result<Node> atom() {
        skip_spaces();
        if (at_ == text_.size()) return fault("something is missing");
        const char c = text_[at_];
        if (take("(")) return items(')', Operator::list);
        if (take("[")) return items(']', Operator::list);
        if (c == '\'' || c == '"') return quoted(c);
        if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') return number();
        if (is_word(c)) return word();
        return fault(std::string("'") + c + "' is not understood");
    }

    // What stands between brackets. One item in round ones without a comma is itself.
    Result<Node> items(char end, Operator what) {
        Node list{what, {}, 0, {}};
        bool comma = false;
        while (!take(std::string_view(&end, 1))) {
            if (!list.operands.empty() && !comma) return fault(std::string("',' or '") + end + "' is missing");
            TILEWRIGHT_ASSIGN_OR_RETURN(Node item, choice());
            list.operands.push_back(std::move(item));
            comma = take(",");
        }
        if (end == ')' && what == Operator::list && list.operands.size() == 1 && !comma) return Node(std::move(list.operands[0]));
        const auto is_constant = [](const Node& node) { return node.what == Operator::constant; };
        if (what != Operator::list || !std::ranges::all_of(list.operands, is_constant)) return list;
        std::vector<ExpressionValue> values;  // known already
        for (Node& item : list.operands) values.push_back(std::move(item.value));
        return Node{Operator::constant, ExpressionValue(std::move(values)), 0, {}};
    }

    Result<Node> quoted(char quote) {
        const size_t end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) return fault("a text does not end");
        std::string text(text_.substr(at_ + 1, end - at_ - 1));
        if (text.find('\\') != std::string::npos) return fault("a backslash in a text is not understood");
        at_ = end + 1;
        return Node{Operator::constant, ExpressionValue(std::move(text)), 0, {}};
    }

    Result<Node> number() {
        double value = 0;
        const char* const begin = text_.data() + at_;
        const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
        if (error != std::errc() || (end != text_.data() + text_.size() && is_word(*end))) return fault("not a number");
        at_ += static_cast<size_t>(end - begin);
        return Node{Operator::constant, value, 0, {}};
    }

    Result<Node> word() {
        size_t end = at_;
        while (end < text_.size() && is_word(text_[end])) ++end;
        const std::string_view name = text_.substr(at_, end - at_);
        if (const auto known = std::ranges::find(names_, name); known != names_.end()) {
            at_ = end;
            const auto place = static_cast<size_t>(known - names_.begin());
            uses_.push_back(place);
            return Node{Operator::name, {}, place, {}};
        }
        if (name == "True" || name == "False") {
            at_ = end;
            return Node{Operator::constant, name == "True" ? 1.0 : 0.0, 0, {}};
        }
        constexpr std::pair<std::string_view, Operator> functions[] = {{"abs", Operator::abs}, {"min", Operator::min},      {"max", Operator::max},
                                                                       {"len", Operator::len}, {"list", Operator::to_list}, {"range", Operator::range}};
        for (const auto& [function, what] : functions) {
            if (name != function) continue;
            at_ = end;
            if (!take("(")) return fault("'(' is missing");
            return items(')', what);
        }
        return fault("'" + std::string(name.substr(0, 40)) + "' is neither a parameter nor a known function");
    }

    std::string_view text_;
    std::span<const std::string> names_;
    std::vector<size_t>& uses_;
    size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace

Result<Expression::Node> parse_expression(std::string_view text, std::span<const std::string> names, std::vector<size_t>& uses) {
    return Parser(text, names, uses).all();
}

}  // namespace tilewright
