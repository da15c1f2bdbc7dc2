// From tunables and constraints to indices.
#include "tuner/tuning_space.h"

#include <algorithm>

#include "model/model.h"

namespace tilewright {

Result<TuningSpace> tuning_space(const Problem& problem, const Arch& arch, const std::vector<Config>& seeds) {
    Space space = search_space(problem, arch);
    std::vector<Rejection> rejections;
    std::vector<Config> configs = enumerate(space, &rejections);
    if (configs.empty())
        return Status(StatusCode::unsupported,
                      "no config of " + to_text(problem) + " can run on " + arch.name + (rejections.empty() ? "" : ": " + rejections.back().reason));
    std::vector<SearchParameter> parameters;
    for (const SpaceField& field : space.fields) {
        SearchParameter parameter{field.name, {}, {}};
        for (const int value : field.values) {
            parameter.labels.push_back(std::to_string(value));
            parameter.positions.push_back(value);
        }
        parameters.push_back(std::move(parameter));
    }
    std::vector<uint16_t> rows;
    std::vector<double> prior;
    std::vector<uint32_t> seed_indices;
    for (const Config& config : configs) {
        for (const SpaceField& field : space.fields)
            rows.push_back(static_cast<uint16_t>(std::ranges::lower_bound(field.values, config.*field.member) - field.values.begin()));
        const auto prediction = predict(problem, config, arch);
        prior.push_back(prediction.ok() ? prediction->time_us : 1e12);
    }
    for (const Config& seed : seeds) {
        const auto place = std::ranges::find(configs, seed);
        const auto index = static_cast<uint32_t>(place - configs.begin());
        if (place != configs.end() && std::ranges::find(seed_indices, index) == seed_indices.end()) seed_indices.push_back(index);
    }
    auto search = SearchSpace::create(std::move(parameters), std::move(rows), std::move(prior), std::move(seed_indices));
    if (!search.ok()) return search.status();
    std::map<std::string, int64_t> rejected;
    std::map<std::string, std::string> examples;
    for (const Rejection& rejection : rejections) {
        ++rejected[name(rejection.constraint)];
        examples.emplace(name(rejection.constraint), rejection.reason);
    }
    return TuningSpace{std::move(space), std::move(configs), *std::move(search), std::move(rejected), std::move(rejections), std::move(examples)};
}

}  // namespace tilewright
