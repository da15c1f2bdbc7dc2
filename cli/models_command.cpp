// tilewright models: the public model shapes that --model knows.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "core/models.h"

namespace tilewright::cli {

int models_command(const Arguments& arguments) {
    CommandLine line("models", "lists the public model shapes that --model knows, and where they are from");
    if (auto exit = line.parse(arguments)) return *exit;
    if (line.json()) {
        auto list = nlohmann::ordered_json::array();
        for (const ModelShape& shape : model_shapes())
            list.push_back({{"name", shape.name}, {"heads_q", shape.heads_q}, {"heads_kv", shape.heads_kv}, {"head_dim", shape.head_dim},
                            {"head_dim_v", shape.head_dim_v}, {"window", shape.window}, {"causal", shape.causal},
                            {"softcap", shape.softcap}, {"sink", shape.sink}, {"source", shape.source}});
        std::printf("%s\n", list.dump(2).c_str());
        return exit_success;
    }
    std::printf("%-14s %5s %5s %5s %5s  %-28s %s\n", "model", "hq", "hkv", "d", "dv", "mask", "source");
    for (const ModelShape& shape : model_shapes()) {
        std::string mask = shape.window ? "window " + std::to_string(shape.window) : shape.causal ? "causal" : "full";
        if (shape.softcap) mask += ", softcap";
        if (shape.sink) mask += ", sinks";
        std::printf("%-14s %5lld %5lld %5lld %5lld  %-28s %s\n", shape.name, (long long)shape.heads_q, (long long)shape.heads_kv,
                    (long long)shape.head_dim, (long long)shape.head_dim_v, mask.c_str(), shape.source);
    }
    return exit_success;
}

}  // namespace tilewright::cli
