// Reading T4 results files: one JSON object per measured configuration.
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "tuner/replay.h"
#include "tuner/strategy.h"

namespace tilewright {
namespace {

using nlohmann::json;

Result<std::string> read_possibly_compressed(const std::string& path) {
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
    if (file == nullptr || std::filesystem::is_directory(path)) return Status(StatusCode::io, "cannot read '" + path + "'");
    std::string text, block(1 << 20, '\0');
    int count;
    while ((count = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()))) > 0) text.append(block, 0, static_cast<size_t>(count));
    if (count < 0) return Status(StatusCode::io, "'" + path + "' is damaged: " + gzerror(file.get(), &count));
    return text;
}

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

// Parameters in the order of their names' first appearance, values sorted: as numbers where all are.
Result<SearchSpace> space_of(const json& results) {
    std::vector<SearchParameter> parameters;
    std::vector<std::map<json, uint16_t>> indices;
    for (const auto& [name, value] : results.at(0).at("configuration").items()) {
        std::map<json, uint16_t> values;
        for (const json& result : results) values[result.at("configuration").at(name)] = 0;
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
    for (const json& result : results) {
        if (result.at("configuration").size() != parameters.size()) return invalid_argument("configurations differ in their parameters");
        for (size_t i = 0; i < parameters.size(); ++i) rows.push_back(indices[i].at(result.at("configuration").at(parameters[i].name)));
    }
    return SearchSpace::create(std::move(parameters), std::move(rows));
}

}  // namespace

Result<RecordedSpace> read_t4(const std::string& path) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::string text, read_possibly_compressed(path));
    const json document = json::parse(text, nullptr, false);
    if (document.is_discarded()) return invalid_argument("'" + path + "' is not JSON");
    try {
        const json& results = document.at("results");
        if (!results.is_array() || results.empty()) return invalid_argument("'" + path + "' holds no results");
        auto space = space_of(results);
        if (!space.ok()) return invalid_argument("'" + path + "': " + space.status().message());
        RecordedSpace recorded{std::filesystem::path(path).filename().string(), *std::move(space), {}, {}};
        for (const json& result : results) {
            recorded.costs.push_back(cost_of(result));
            recorded.outcomes.push_back(result.at("invalidity").get<std::string>());
        }
        return recorded;
    } catch (const json::exception& error) {
        return invalid_argument("'" + path + "' is not a T4 results file: " + error.what());
    }
}

}  // namespace tilewright
