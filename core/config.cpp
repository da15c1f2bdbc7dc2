// The list of tunables, and a config as canonical JSON.
#include "tilewright/config.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace tilewright {
namespace {

constexpr ConfigField fields[] = {
    {"block_q", &Config::block_q, "query rows of a tile"},
    {"block_kv", &Config::block_kv, "keys of a tile"},
    {"stages", &Config::stages, "KV tiles in flight"},
    {"workers", &Config::workers, "warps (sm_90a: warpgroups) that share a tile"},
    {"blocks", &Config::blocks, "blocks per multiprocessor (AMD: waves per SIMD) to leave registers for"},
    {"slack", &Config::slack, "powers of two by which a row maximum may lag before the output is rescaled"},
    {"overlapped", &Config::overlapped, "1: the next tile's scores are computed beside this tile's output"},
    {"turns", &Config::turns, "1: workers issue their matrix products in turn"},
    {"packs_heads", &Config::packs_heads, "1: the query heads of a KV head share a tile"},
    {"section_kb", &Config::section_kb, "heads (of a die) walk together while their K and V fit in so many KiB; 0: all"},
    {"dot16", &Config::dot16, "CPU: 1: 16-bit dot products where the processor has them"},
    {"persistent", &Config::persistent, "1: as many blocks as fit the device, tiles dealt at run time"},
    {"dq", &Config::dq, "backward: 0: dQ in a pass of its own; 1: added to in memory beside dK and dV; 2: the same in a fixed order"},
    {"units", &Config::units, "decode: pieces of work for each multiprocessor (CPU: thread) that keys are cut into; 0: 3 (CPU: 4)"},
    {"early_kb", &Config::early_kb, "decode, sm_90a: KiB of keys and values that a block asks for while the kernel before is still running; 0: it waits"},
};

}  // namespace

std::span<const ConfigField> config_fields() { return fields; }

std::string to_json(const Config& config) {
    std::string text = "{";
    for (const ConfigField& field : fields) {
        if (text.size() > 1) text += ',';
        text += '"' + std::string(field.name) + "\":" + std::to_string(config.*field.member);
    }
    return text + '}';
}

Result<Config> parse_config(std::string_view text) {
    nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return invalid_argument("a config is a JSON object of integers, not '" + std::string(text.substr(0, 80)) + "'");
    Config config;
    for (const auto& [key, value] : json.items()) {
        const ConfigField* found = nullptr;
        for (const ConfigField& field : fields)
            if (key == field.name) found = &field;
        if (!found) return invalid_argument("unknown config field '" + key + "'");
        if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<int>::max())
            return invalid_argument("config field '" + key + "' is " + value.dump().substr(0, 40) + "; it must be an integer from 0 to 2147483647");
        config.*found->member = value.get<int>();
    }
    return config;
}

}  // namespace tilewright
