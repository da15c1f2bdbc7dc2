// `tilewright lookup`: which config a problem runs with on a device, and how that is known.
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "runtime/device_class.h"

namespace tilewright::cli {
namespace {

// The device called `id`, or any device of the architecture called `arch`, which need not be here.
Result<DeviceInfo> device_of(const std::string& id, const std::string& arch) {
    if (!arch.empty()) {
        TILEWRIGHT_ASSIGN_OR_RETURN(Arch known, arch_named(arch));
        return DeviceInfo{"", "", known, ""};
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, open_device(id));
    return device->info();
}

nlohmann::json to_json_object(const LookupResult& found, const Problem& problem) {
    nlohmann::json json{{"problem", to_text(problem)},
                        {"found", name(found.provenance)},
                        {"config", nlohmann::json::parse(to_json(found.config))},
                        {"distance", found.distance}};
    if (!found.problem.empty()) {
        json["tuned_problem"] = found.problem, json["device"] = found.device, json["database"] = found.database;
        json["spread"] = found.spread, json["error"] = found.error, json["measured_at"] = found.measured_at;
    }
    if (found.problem.empty() && !found.database.empty()) json["database"] = found.database, json["predicted_at"] = found.measured_at;
    if (found.median_us > 0) json[found.problem.empty() ? "predicted_us" : "median_us"] = found.median_us;
    return json;
}

}  // namespace

int lookup_command(const Arguments& arguments) {
    std::string device = "cpu:0", arch, database;
    ProblemOptions problem_options;
    CommandLine line("lookup", "says which config a problem runs with, and how that is known");
    problem_options.add_to(line);
    line.option("device", &device, "ID", "the device").option("arch", &arch, "NAME", "an architecture instead, which need not be here");
    line.option("db", &database, "FILE", "tuning database to ask first");
    line.example("tilewright lookup --problem forward:hq8,hkv2,sq1100,d64,fp32,causal --device cpu:0 --db t.db");
    if (std::optional<int> exit = line.parse(arguments)) return *exit;
    Result<Problem> problem = problem_options.problem();
    if (!problem.ok()) return fail("lookup", problem.status());
    Result<DeviceInfo> info = device_of(device, arch);
    if (!info.ok()) return fail("lookup", info.status());

    DatabaseOptions options;
    options.user_path = database, options.log_misses = false;
    options.hooks = lookup_hooks(info->arch);
    TuningDatabase tuning = TuningDatabase::open(options);
    for (const DatabaseLayer& layer : tuning.layers())
        if (layer.user && !database.empty() && !layer.status.ok()) return fail("lookup", layer.status);
    const LookupResult found = tuning.lookup(*problem, tuning.device(device_class(*info)));
    if (line.json())
        std::printf("%s\n", to_json_object(found, *problem).dump().c_str());
    else
        std::printf("%s\n%s\n", describe(found, std::time(nullptr)).c_str(), to_json(found.config).c_str());
    return exit_success;
}

}  // namespace tilewright::cli
