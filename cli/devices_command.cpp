// tilewright devices: what each backend can run on and compile with, and why it cannot where it cannot.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backends/backend.h"
#include "cli/cli.h"

namespace tilewright::cli {
namespace {

using Json = nlohmann::ordered_json;

struct BackendState {
    std::string name;
    Result<std::string> compiler;
    Result<std::vector<DeviceInfo>> devices;
};

std::vector<BackendState> ask_backends() {
    std::vector<BackendState> states;
    for (Backend* backend : backends()) states.push_back({backend->name(), backend->toolchain(), backend->devices()});
    return states;
}

Json to_json(const DeviceInfo& device) {
    const Arch& arch = device.arch;
    return {{"id", device.id}, {"name", device.name}, {"arch", arch.name}, {"driver", device.driver}, {"units", arch.units},
            {"shared_bytes_per_block", arch.shared_bytes_per_block}, {"shared_bytes_per_unit", arch.shared_bytes_per_unit},
            {"registers_per_unit", arch.registers_per_unit}, {"dies", arch.dies}, {"l2_bytes", arch.l2_bytes}, {"last_level_cache_bytes", arch.last_level_cache_bytes},
            {"clock_ghz", arch.clock_ghz}, {"memory_gbps", arch.memory_gbps}};
}

Json to_json(const BackendState& state) {
    Json json = {{"backend", state.name}};
    if (state.compiler.ok()) json["compiler"] = *state.compiler;
    else json["compiler_absent"] = state.compiler.status().message();
    json["devices"] = Json::array();
    if (!state.devices.ok()) json["devices_absent"] = state.devices.status().message();
    else
        for (const DeviceInfo& device : *state.devices) json["devices"].push_back(to_json(device));
    return json;
}

void print(const BackendState& state) {
    std::printf("%s\n", state.name.c_str());
    std::printf("  compiler   %s\n", state.compiler.ok() ? state.compiler->c_str() : ("none: " + state.compiler.status().message()).c_str());
    if (!state.devices.ok()) std::printf("  devices    none: %s\n", state.devices.status().message().c_str());
    else if (state.devices->empty()) std::printf("  devices    none\n");
    else
        for (const DeviceInfo& device : *state.devices)
            std::printf("  %-10s %s: %s, %d units, %s %s, %s last-level cache\n", device.id.c_str(), device.name.c_str(), device.arch.name.c_str(),
                        device.arch.units, human_bytes(double(device.arch.shared_bytes_per_block)).c_str(), device.arch.backend == "cpu" ? "L2" : "shared memory per block",
                        human_bytes(double(device.arch.last_level_cache_bytes)).c_str());
}

}  // namespace

int devices_command(const Arguments& arguments) {
    CommandLine line("devices", "lists the devices and compilers of every backend, and why one is absent");
    if (auto exit = line.parse(arguments)) return *exit;
    std::vector<BackendState> states = ask_backends();
    if (line.json()) {
        Json archs = Json::array(), list = Json::array();
        for (const BackendState& state : states) list.push_back(to_json(state));
        for (const Arch& arch : known_archs()) archs.push_back(arch.name);
        std::printf("%s\n", Json{{"backends", list}, {"known_archs", archs}}.dump(2).c_str());
        return exit_success;
    }
    for (const BackendState& state : states) print(state);
    std::string names = "cpu";
    for (const Arch& arch : known_archs()) names += " " + arch.name;
    std::printf("\nkernels can be explained for %s\n", names.c_str());
    return exit_success;
}

}  // namespace tilewright::cli
