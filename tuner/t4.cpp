// Reading T4 results files: one JSON object per measured configuration.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "tuner/replay.h"
#include "tuner/strategy.h"
#include "tuner/text_file.h"

namespace tilewright {
namespace {

using nlohmann::json;

// The objective's value among the measurements; failed_cost where the configuration failed or has none.
double cost_of(const json& result) {
    if (result.at("invalidity") != "correct") return failed_cost;
    const json objectives = result.value("objectives", json::array());
    const std::string objective = objectives.empty() ? "time" : objectives.at(0).get<std::string>();
    for (const json& measurement : result.at("measurements"))
        if (measurement.at("name") == objective && measurement.at("value").is_number() && measurement.at("value").get<double>() > 0)
            return measurement.at("value").get<double>();
    return failed_cost;
}

// One result for each configuration: of several the last, which knew most (a race after a measurement alone). In the order of first appearance.
std::vector<const json*> latest_of(const json& results) {
    std::vector<const json*> latest;
    std::map<json, size_t> places;
    for (const json& result : results) {
        const auto [place, is_new] = places.try_emplace(result.at("configuration"), latest.size());
        if (is_new)
            latest.push_back(&result);
        else
            latest[place->second] = &result;
    }
    return latest;
}

// Parameters in the order of their names' first appearance, values sorted: as numbers where all are.
Result<SearchSpace> space_of(const std::vector<const json*>& results) {
    std::vector<SearchParameter> parameters;
    std::vector<std::map<json, uint16_t>> indices;
    for (const auto& [name, value] : results[0]->at("configuration").items()) {
        std::map<json, uint16_t> values;
        for (const json* result : results) values[result->at("configuration").at(name)] = 0;
        SearchParameter parameter{name, {}, {}};
        const bool numeric = std::ranges::all_of(values, [](const auto& each) { return each.first.is_number(); });
        for (auto& [key, index] : values) {  // json orders numbers by value
            index = static_cast<uint16_t>(parameter.labels.size());
            parameter.labels.push_back(key.is_string() ? key.get<std::string>() : key.dump());
            if (numeric) parameter.positions.push_back(key.get<double>());
        }
        parameters.push_back(std::move(parameter));
        indices.push_back(std::move(values));
    }
    std::vector<uint16_t> rows;
    rows.reserve(results.size() * parameters.size());
    for (const json* result : results) {
        const json& configuration = result->at("configuration");
        if (configuration.size() != parameters.size()) return invalid_argument("configurations differ in their parameters");
        for (size_t i = 0; i < parameters.size(); ++i) rows.push_back(indices[i].at(configuration.at(parameters[i].name)));
    }
    return SearchSpace::create(std::move(parameters), std::move(rows));
}

// The measurement named "predicted", which is what a model said before; none: not a number.
double prediction_of(const json& result) {
    for (const json& measurement : result.value("measurements", json::array()))
        if (measurement.at("name") == "predicted" && measurement.at("value").is_number()) return measurement.at("value").get<double>();
    return std::numeric_limits<double>::quiet_NaN();
}

// The index of a result's configuration in the space, which may leave out what has one value.
Result<uint32_t> place_of(const json& configuration, const SearchSpace& space) {
    std::vector<uint16_t> row;
    for (const SearchParameter& parameter : space.parameters()) {
        if (parameter.labels.size() == 1 && !configuration.contains(parameter.name)) {
            row.push_back(0);
            continue;
        }
        const json& value = configuration.at(parameter.name);
        size_t index = 0;
        if (parameter.positions.empty()) {
            index = static_cast<size_t>(std::ranges::find(parameter.labels, value.is_string() ? value.get<std::string>() : value.dump()) - parameter.labels.begin());
        } else {
            const double number = value.is_boolean() ? value.get<bool>() : value.get<double>();
            index = static_cast<size_t>(std::ranges::find(parameter.positions, number) - parameter.positions.begin());
        }
        if (index == parameter.labels.size()) return invalid_argument("'" + parameter.name + "' is " + value.dump() + ", which the space does not have");
        row.push_back(static_cast<uint16_t>(index));
    }
    if (const auto place = space.find(row)) return *place;
    return invalid_argument("it does not fulfil the space's conditions");
}

// What the space does not name must be the same everywhere, or configurations would be mixed up.
Status check_unnamed(const std::vector<const json*>& results, const SearchSpace& space) {
    for (const auto& [name, value] : results[0]->at("configuration").items()) {
        if (std::ranges::find(space.parameters(), name, &SearchParameter::name) != space.parameters().end()) continue;
        for (const json* result : results)
            if (result->at("configuration").at(name) != value) return invalid_argument("results differ in '" + name + "', of which the space says nothing");
    }
    return {};
}

// `first`: the metadata's list of configurations to try first.
Result<RecordedSpace> record(const std::vector<const json*>& results, const json& first, RecordedSpace recorded) {
    std::vector<double> prior(recorded.space.size(), 1e12);
    std::vector<uint32_t> seeds;
    recorded.costs.assign(recorded.space.size(), failed_cost);
    recorded.outcomes.assign(recorded.space.size(), "missing");
    TILEWRIGHT_RETURN_IF_ERROR(check_unnamed(results, recorded.space));
    for (const json* result : results) {
        const Result<uint32_t> place = place_of(result->at("configuration"), recorded.space);
        if (!place.ok()) return invalid_argument("configuration " + result->at("configuration").dump() + ": " + place.status().message());
        recorded.costs[*place] = cost_of(*result);
        prior[*place] = prediction_of(*result);
        recorded.outcomes[*place] = result->at("invalidity").get<std::string>();
    }
    if (std::ranges::any_of(prior, [](double value) { return !(value > 0); })) prior.clear();
    for (const json& configuration : first) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const uint32_t seed, place_of(configuration, recorded.space));
        seeds.push_back(seed);
    }
    TILEWRIGHT_RETURN_IF_ERROR(recorded.space.set_guidance(std::move(prior), std::move(seeds)));
    recorded.missing = static_cast<uint32_t>(std::ranges::count(recorded.outcomes, "missing"));
    return recorded;
}

}  // namespace

Result<RecordedSpace> read_t4(const std::string& path, const std::string& t1_path) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::string text, read_text(path));
    const json document = json::parse(text, nullptr, false);
    if (document.is_discarded()) return invalid_argument("'" + path + "' is not JSON");
    try {
        const json& all = document.at("results");
        if (!all.is_array() || all.empty()) return invalid_argument("'" + path + "' holds no results");
        const std::vector<const json*> results = latest_of(all);
        auto space = t1_path.empty() ? space_of(results) : read_t1(t1_path);
        if (!space.ok()) return t1_path.empty() ? invalid_argument("'" + path + "': " + space.status().message()) : space.status();
        const json first = document.value("metadata", json::object()).value("first", json::array());
        auto recorded = record(results, first, {std::filesystem::path(path).filename().string(), *std::move(space), {}, {}});
        if (!recorded.ok()) return invalid_argument("'" + path + "': " + recorded.status().message());
        return recorded;
    } catch (const json::exception& error) {
        return invalid_argument("'" + path + "' is not a T4 results file: " + error.what());
    }
}

}  // namespace tilewright
