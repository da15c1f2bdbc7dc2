// What a tuning database holds of one problem on one device, as a recorded space with the model's predictions.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "db/store.h"
#include "model/model.h"
#include "model/space.h"
#include "tuner/replay.h"
#include "tuner/strategy.h"

namespace tilewright {
namespace {

struct Measured {
    double cost = failed_cost;
    std::string outcome;
};

// By canonical JSON, so that the order of configurations does not depend on the order of the run.
struct Recording {
    Problem problem;
    DeviceClass device;
    std::map<std::string, std::pair<Config, Measured>> configs;
};

// Rows of other toolchains measured other kernels; those of a race were measured beside others, under other conditions; those that were
// never run say nothing.
bool counts(const MeasurementRow& row) {
    const Outcome outcome = row.measurement.outcome;
    return row.newest_toolchain && row.measurement.race == 0 && outcome != Outcome::predicted && outcome != Outcome::imported && outcome != Outcome::constraints;
}

Result<Recording> recording(Store& store, const std::string& path, const std::string& problem) {
    Recording found;
    std::set<std::string> others;
    const auto take = [&](const MeasurementRow& row) -> Status {
        if (!counts(row)) return {};
        const std::string text = to_text(row.problem);
        if (!problem.empty() && text != problem) return others.insert(text), Status();
        if (found.configs.empty()) found.problem = row.problem, found.device = row.device;
        if (row.problem != found.problem || row.device != found.device)
            return invalid_argument("'" + path + "' holds several spaces, such as " + to_text(found.problem) + " on " + found.device.name + " and " + text + " on " +
                                    row.device.name + ": name the problem, and keep devices in files of their own");
        Measured& measured = found.configs.try_emplace(to_json(row.measurement.config), row.measurement.config, Measured{}).first->second.second;
        const bool correct = row.measurement.outcome == Outcome::correct;
        if (correct) measured.cost = std::min(measured.cost, row.measurement.median_us);
        if (correct || measured.outcome.empty()) measured.outcome = name(row.measurement.outcome);
        return {};
    };
    TILEWRIGHT_RETURN_IF_ERROR(store.for_each(take));
    if (!found.configs.empty()) return found;
    return Status(StatusCode::not_found, "'" + path + "' holds no measurement" + (problem.empty() ? "" : " of " + problem) +
                                             (others.empty() ? "" : "; it has " + *others.begin() + (others.size() > 1 ? " and others" : "")));
}

// Only fields that differ are parameters.
std::vector<SearchParameter> parameters_of(const Recording& recording, std::vector<std::vector<int>>& values, std::vector<int Config::*>& members) {
    std::vector<SearchParameter> parameters;
    for (const ConfigField& field : config_fields()) {
        std::set<int> seen;
        for (const auto& [text, entry] : recording.configs) seen.insert(entry.first.*field.member);
        if (seen.size() == 1 && recording.configs.size() > 1) continue;
        SearchParameter parameter{field.name, {}, {}};
        for (const int value : seen) parameter.labels.push_back(std::to_string(value)), parameter.positions.push_back(value);
        parameters.push_back(std::move(parameter));
        values.emplace_back(seen.begin(), seen.end());
        members.push_back(field.member);
    }
    return parameters;
}

}  // namespace

Result<RecordedSpace> read_database_space(const std::string& path, const std::string& problem) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Store store, Store::open(path, StoreMode::read));
    TILEWRIGHT_ASSIGN_OR_RETURN(const Recording all, recording(store, path, problem));
    std::vector<std::vector<int>> values;
    std::vector<int Config::*> members;
    std::vector<SearchParameter> parameters = parameters_of(all, values, members);
    const Arch* arch = find_arch(all.device.arch);
    const Config first = arch ? default_config(all.problem, *arch) : Config{};

    RecordedSpace recorded{std::filesystem::path(path).filename().string() + " " + to_text(all.problem), {}, {}, {}};
    std::vector<uint16_t> rows;
    std::vector<double> prior;
    std::vector<uint32_t> seeds;
    for (const auto& [text, entry] : all.configs) {
        const auto& [config, measured] = entry;
        for (size_t i = 0; i < members.size(); ++i) rows.push_back(static_cast<uint16_t>(std::ranges::lower_bound(values[i], config.*members[i]) - values[i].begin()));
        if (arch) {
            const auto prediction = predict(dense_spec(all.problem, config), *arch);
            prior.push_back(prediction.ok() ? prediction->time_us : 1e12);
            if (config == first) seeds.push_back(static_cast<uint32_t>(recorded.costs.size()));
        }
        recorded.costs.push_back(measured.cost);
        recorded.outcomes.push_back(measured.outcome);
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(recorded.space, SearchSpace::create(std::move(parameters), std::move(rows), std::move(prior), std::move(seeds)));
    return recorded;
}

}  // namespace tilewright
