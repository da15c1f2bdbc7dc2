// Conditions that describe a list of legal configurations exactly.
#include <algorithm>
#include <functional>

#include "tuner/conditioned_space.h"

namespace tilewright {
namespace {

// Members of a subset of the parameters' product, numbered.
struct Projection {
    std::vector<size_t> places;
    std::vector<bool> occurs;  // by number

    Projection(const SearchSpace& space, std::vector<size_t> of) : places(std::move(of)) {
        size_t count = 1;
        for (const size_t place : places) count *= space.parameters()[place].labels.size();
        occurs.assign(count, false);
        for (uint32_t index = 0; index < space.size(); ++index) occurs[number(space, space.row(index))] = true;
    }
    size_t number(const SearchSpace& space, std::span<const uint16_t> row) const {
        size_t number = 0;
        for (const size_t place : places) number = number * space.parameters()[place].labels.size() + row[place];
        return number;
    }
};

// "(a, b) not in ((1, 2), (1, 4))", or with what does occur where that is shorter.
SpaceCondition condition_of(const SearchSpace& space, const Projection& projection) {
    const auto count = static_cast<size_t>(std::ranges::count(projection.occurs, true));
    const bool listed = count <= projection.occurs.size() / 2;
    const auto parameter = [&](size_t place) -> const SearchParameter& { return space.parameters()[place]; };
    SpaceCondition condition;
    std::string names, members;
    for (const size_t place : projection.places) {
        condition.parameters.push_back(parameter(place).name);
        names += (names.empty() ? "" : ", ") + parameter(place).name;
    }
    for (size_t number = 0; number < projection.occurs.size(); ++number) {
        if (projection.occurs[number] != listed) continue;
        std::string member;
        size_t rest = number;
        for (size_t i = projection.places.size(); i-- > 0;) {
            const std::vector<std::string>& labels = parameter(projection.places[i]).labels;
            member = labels[rest % labels.size()] + (member.empty() ? "" : ", ") + member;
            rest /= labels.size();
        }
        members += (members.empty() ? "(" : ", (") + member + ")";
    }
    condition.expression = "(" + names + ") " + (listed ? "in" : "not in") + " [" + members + "]";
    return condition;
}

// Every choice of `count` of the parameters that have several values.
void for_each_choice(const std::vector<size_t>& of, size_t count, const std::function<void(const std::vector<size_t>&)>& visit) {
    std::vector<size_t> chosen;
    const std::function<void(size_t)> extend = [&](size_t from) {
        if (chosen.size() == count) return visit(chosen);
        for (size_t i = from; i < of.size(); ++i) {
            chosen.push_back(of[i]);
            extend(i + 1);
            chosen.pop_back();
        }
    };
    extend(0);
}

}  // namespace

std::vector<SpaceCondition> conditions_of(const SearchSpace& space) {
    std::vector<size_t> varying;
    for (size_t i = 0; i < space.parameters().size(); ++i)
        if (space.parameters()[i].labels.size() > 1) varying.push_back(i);
    // Members of the product that are not legal and that no condition has caught yet.
    std::vector<std::vector<uint16_t>> wrong;
    const Projection whole(space, varying);
    for (size_t number = 0; number < whole.occurs.size(); ++number) {
        if (whole.occurs[number]) continue;
        std::vector<uint16_t>& row = wrong.emplace_back(space.parameters().size(), uint16_t{0});
        size_t rest = number;
        for (size_t i = varying.size(); i-- > 0;) {
            const size_t values = space.parameters()[varying[i]].labels.size();
            row[varying[i]] = static_cast<uint16_t>(rest % values);
            rest /= values;
        }
    }
    std::vector<SpaceCondition> conditions;
    const auto exclude = [&](const std::vector<size_t>& places) {
        if (wrong.empty()) return;
        const Projection projection(space, places);
        if (std::erase_if(wrong, [&](const auto& row) { return !projection.occurs[projection.number(space, row)]; }) > 0)
            conditions.push_back(condition_of(space, projection));
    };
    for (size_t count = 1; count <= std::min<size_t>(3, varying.size()); ++count) for_each_choice(varying, count, exclude);
    if (wrong.empty()) return conditions;
    Projection rest(space, varying);
    if (wrong.size() < space.size()) {  // shorter than the legal ones
        rest.occurs.assign(rest.occurs.size(), true);
        for (const auto& row : wrong) rest.occurs[rest.number(space, row)] = false;
    }
    conditions.push_back(condition_of(space, rest));
    return conditions;
}

}  // namespace tilewright
