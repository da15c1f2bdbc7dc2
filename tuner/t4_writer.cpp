// Writing a recorded space as a T4 results file.
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "tuner/replay.h"
#include "tuner/strategy.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

Json configuration_of(const SearchSpace& space, uint32_t index) {
    Json configuration = Json::object();
    for (size_t i = 0; i < space.parameters().size(); ++i) {
        const SearchParameter& parameter = space.parameters()[i];
        const uint16_t value = space.row(index)[i];
        configuration[parameter.name] = parameter.positions.empty() ? Json(parameter.labels[value]) : Json::parse(parameter.labels[value]);
    }
    return configuration;
}

Json result_of(const RecordedSpace& recorded, uint32_t index) {
    const double cost = recorded.costs[index];
    Json measurements = Json::array(), runtimes = Json::array();
    if (cost < failed_cost) {
        measurements.push_back({{"name", "time"}, {"value", cost}, {"unit", ""}});
        runtimes.push_back(cost);
    }
    if (!recorded.space.prior().empty()) measurements.push_back({{"name", "predicted"}, {"value", recorded.space.prior()[index]}, {"unit", ""}});
    return {{"configuration", configuration_of(recorded.space, index)},
            {"times", {{"runtimes", runtimes}}},
            {"invalidity", recorded.outcomes[index]},
            {"correctness", cost < failed_cost ? 1 : 0},
            {"measurements", measurements},
            {"objectives", {"time"}}};
}

}  // namespace

Status write_t4(const RecordedSpace& recorded, const std::string& path) {
    Json results = Json::array(), first = Json::array();
    for (uint32_t index = 0; index < recorded.space.size(); ++index)
        if (recorded.outcomes[index] != "missing") results.push_back(result_of(recorded, index));
    for (const uint32_t seed : recorded.space.seeds()) first.push_back(configuration_of(recorded.space, seed));
    const Json document = {{"schema_version", "1.0.0"}, {"metadata", {{"space", recorded.name}, {"first", first}}}, {"results", results}};
    const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    const bool compressed = path.ends_with(".gz");
    const gzFile file = gzopen(path.c_str(), compressed ? "wb9" : "wbT");
    if (file == nullptr) return {StatusCode::io, "cannot write '" + path + "'"};
    const bool written = gzwrite(file, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size());
    if (gzclose(file) != Z_OK || !written) return {StatusCode::io, "'" + path + "' could not be written to its end"};
    return {};
}

}  // namespace tilewright
