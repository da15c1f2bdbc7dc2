// Fuzz target: config JSON. What is taken has canonical JSON that says the same.
#include <string>

#include "fuzz/fuzz.h"
#include "tilewright/config.h"

using namespace tilewright;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const Result<Config> config = parse_config({reinterpret_cast<const char*>(data), size});
    if (!config.ok()) return 0;
    for (const ConfigField& field : config_fields()) FUZZ_REQUIRE((*config).*field.member >= 0);
    const std::string json = to_json(*config);
    const Result<Config> again = parse_config(json);
    FUZZ_REQUIRE(again.ok() && *again == *config && to_json(*again) == json);
    return 0;
}
