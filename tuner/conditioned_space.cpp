// Enumerating a conditioned space: depth first, a branch is left at the first condition that is false.
#include "tuner/conditioned_space.h"

#include <algorithm>

#include "tuner/expression.h"

namespace tilewright {
namespace {

constexpr size_t most_remembered = 1 << 20;     // combinations of one condition
constexpr size_t most_values = size_t{1} << 27;  // in all rows

struct Condition {
    std::string text;
    Expression expression;
    std::vector<size_t> strides;  // of each parameter used, in `known`
    std::vector<int8_t> known;    // by combination: -1 not looked at yet, else the answer; empty: too many to remember
};

class Enumeration {
public:
    explicit Enumeration(const std::vector<SearchParameter>& parameters) : parameters_(parameters), current_(parameters.size()), row_(parameters.size()) {
        for (const SearchParameter& parameter : parameters) {
            std::vector<ExpressionValue>& values = values_.emplace_back();
            for (size_t i = 0; i < parameter.labels.size(); ++i)
                values.push_back(parameter.positions.empty() ? ExpressionValue(parameter.labels[i]) : ExpressionValue(parameter.positions[i]));
        }
    }

    Status add(const SpaceCondition& condition) {
        std::vector<std::string> names;
        for (const SearchParameter& parameter : parameters_) names.push_back(parameter.name);
        TILEWRIGHT_ASSIGN_OR_RETURN(Expression expression, Expression::parse(condition.expression, names));
        Condition added{condition.expression, std::move(expression), {}, {}};
        size_t count = 1;
        for (const size_t place : added.expression.uses()) {
            added.strides.push_back(count);
            count = std::min(count * parameters_[place].labels.size(), most_remembered + 1);
        }
        if (count <= most_remembered) added.known.assign(count, -1);
        const size_t depth = added.expression.uses().empty() ? 0 : added.expression.uses().back();
        due_.resize(parameters_.size());
        due_[depth].push_back(std::move(added));
        return {};
    }

    Result<std::vector<uint16_t>> rows() {
        due_.resize(parameters_.size());
        TILEWRIGHT_RETURN_IF_ERROR(descend(0));
        return std::move(rows_);
    }

private:
    Status descend(size_t depth) {
        if (depth == parameters_.size()) {
            if (rows_.size() + row_.size() > most_values) return invalid_argument("the space has more than " + std::to_string(most_values / row_.size()) + " legal configurations");
            rows_.insert(rows_.end(), row_.begin(), row_.end());
            return {};
        }
        for (size_t value = 0; value < values_[depth].size(); ++value) {
            row_[depth] = static_cast<uint16_t>(value);
            current_[depth] = values_[depth][value];
            bool legal = true;
            for (Condition& condition : due_[depth]) {
                TILEWRIGHT_ASSIGN_OR_RETURN(legal, holds(condition));
                if (!legal) break;
            }
            if (legal) TILEWRIGHT_RETURN_IF_ERROR(descend(depth + 1));
        }
        return {};
    }

    Result<bool> holds(Condition& condition) {
        if (condition.known.empty()) return evaluate(condition);
        size_t place = 0;
        for (size_t i = 0; i < condition.strides.size(); ++i) place += condition.strides[i] * row_[condition.expression.uses()[i]];
        if (condition.known[place] < 0) {
            TILEWRIGHT_ASSIGN_OR_RETURN(const bool answer, evaluate(condition));
            condition.known[place] = answer ? 1 : 0;
        }
        return condition.known[place] == 1;
    }

    Result<bool> evaluate(const Condition& condition) const {
        const ExpressionValue value = condition.expression.evaluate(current_);
        if (value.kind == ExpressionValue::Kind::fault) {
            std::string where;
            for (const size_t place : condition.expression.uses())
                where += (where.empty() ? "" : ", ") + parameters_[place].name + " = " + parameters_[place].labels[row_[place]];
            return invalid_argument("condition '" + condition.text + "' with " + where + ": " + value.text);
        }
        return is_true(value);
    }

    const std::vector<SearchParameter>& parameters_;
    std::vector<std::vector<ExpressionValue>> values_;
    std::vector<std::vector<Condition>> due_;  // by the last parameter that they speak of
    std::vector<ExpressionValue> current_;
    std::vector<uint16_t> row_, rows_;
};

}  // namespace

Result<std::vector<uint16_t>> legal_rows(const std::vector<SearchParameter>& parameters, const std::vector<SpaceCondition>& conditions) {
    if (parameters.empty()) return invalid_argument("a space needs at least one parameter");
    Enumeration enumeration(parameters);
    for (const SpaceCondition& condition : conditions) TILEWRIGHT_RETURN_IF_ERROR(enumeration.add(condition));
    return enumeration.rows();
}

}  // namespace tilewright
