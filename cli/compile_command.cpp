// tilewright compile: a problem's kernels for one architecture, without a device: its resources, its object file, or a bundle of a whole launch.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backends/operation_plan.h"
#include "backends/bundle.h"
#include "cli/cli.h"
#include "core/scratch_directory.h"
#include "model/occupancy.h"
#include "model/space.h"
#include "verify/device_workload.h"
#include "verify/workload_bundle.h"

namespace tilewright::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Compiled {
    Backend* backend = nullptr;
    KernelSource source;
    CodeObject object;
    Resources resources;
};

Result<Compiled> compile(const Arch& arch, const KernelSpec& spec) {
    Compiled compiled;
    TILEWRIGHT_ASSIGN_OR_RETURN(compiled.backend, find_backend(arch.backend));
    TILEWRIGHT_ASSIGN_OR_RETURN(compiled.source, generate(spec, arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(compiled.object, compiled.backend->compile(compiled.source, arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(compiled.resources, compiled.backend->inspect(compiled.object));
    return compiled;
}

// What is not known for the architecture (-1) is left out.
Json resources_json(const Compiled& compiled, const Arch& arch) {
    const Resources& r = compiled.resources;
    Json json;
    auto add = [&](const char* key, int64_t value) {
        if (value >= 0) json[key] = value;
    };
    bool amd = arch.backend == "amd";
    add(amd ? "vgpr" : "registers", r.registers);
    add("agpr", r.accumulation_registers), add("sgpr", r.scalar_registers);
    int64_t shared = r.shared_bytes >= 0 ? r.shared_bytes + compiled.source.shared_bytes : compiled.source.shared_bytes;
    add(amd ? "lds_bytes" : "shared_bytes", shared);
    add(amd ? "scratch_bytes" : "local_bytes", r.local_bytes);
    if (amd)
        add("vgpr_spills", r.vector_spills), add("sgpr_spills", r.scalar_spills), add("wave_size", r.warp_size);
    else
        add("spill_bytes", r.spill_bytes);
    add("matrix_instructions", r.matrix_instructions), add("vector_bits", r.vector_bits);
    json["threads"] = compiled.source.threads;
    const Occupancy resident = occupancy(compiled.source, r, arch);
    json[arch.backend == "nvidia" ? "blocks_per_sm" : "blocks_per_unit"] = resident.blocks;
    if (amd) json["waves_per_simd"] = waves_per_simd(compiled.source, r, arch);
    json["limited_by"] = name(resident.limit);
    for (const auto& [group, count] : r.instructions) json["instructions"][group] = count;
    if (arch.backend == "nvidia")
        for (const char* group : {"hgmma", "hmma"}) json[group] = json.contains("instructions") ? json["instructions"].value(group, 0) : 0;
    return json;
}

void print(const Json& json, const std::string& indent) {
    for (const auto& [key, value] : json.items()) {
        if (value.is_object())
            std::printf("%s%s\n", indent.c_str(), key.c_str()), print(value, indent + "  ");
        else
            std::printf("%s%-22s %s\n", indent.c_str(), key.c_str(), value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
    }
}

}  // namespace

int compile_command(const Arguments& arguments) {
    std::string arch_name = "gfx942", config_text, object_file, text_file, bundle_directory;
    bool resources = false;
    int rows = 256;
    ProblemOptions problem_options;
    CommandLine line("compile", "compiles the kernels of a problem for one architecture; no device is needed");
    line.option("arch", &arch_name, "NAME", "what to compile for");
    problem_options.add_to(line);
    line.option("config", &config_text, "JSON", "the config; without it, the model's choice");
    line.flag("resources", &resources,
              "print registers, shared memory, spills, occupancy and instruction counts, which is also what happens when nothing else is asked for");
    line.option("output", &object_file, "FILE", "write the object file; where the operation has several kernels, one each, with the kernel's name behind a dot");
    line.option("text", &text_file, "FILE", "write the text that the compiler got");
    line.option("emit-bundle", &bundle_directory, "DIR", "write objects, arguments, inputs and expected outputs of the operation's launches (docs/bundle.md)");
    line.option("rows", &rows, "N", "with --emit-bundle: rows whose results the float64 reference gives; 0: all");
    line.example("tilewright compile --arch gfx942 --problem forward:b4,hq16,hkv16,sq4096,skv4096,d128,bf16 --resources --json");
    line.example("tilewright compile --arch gfx1100 --problem forward:b1,hq2,hkv1,sq128,skv128,d64,fp16,causal --emit-bundle launch");
    if (auto exit = line.parse(arguments)) return *exit;

    Result<Arch> arch = arch_named(arch_name);
    if (!arch.ok()) return fail("compile", arch.status());
    Result<Problem> problem = problem_options.problem();
    if (!problem.ok()) return fail("compile", problem.status());
    Result<Config> config = config_text.empty() ? Result<Config>(default_config(*problem, *arch)) : parse_config(config_text);
    if (!config.ok()) return fail("compile", config.status());
    if (rows < 0) return fail("compile", "rows is " + std::to_string(rows) + "; it must not be negative");
    Result<OperationPlan> plan = plan_operation(*problem, *config, *arch, dense_traits(*problem));
    if (!plan.ok()) return fail("compile", plan.status());
    std::vector<Compiled> all;
    for (const KernelSpec& spec : plan->kernels) {
        Result<Compiled> compiled = compile(*arch, spec);
        if (!compiled.ok()) return fail("compile", compiled.status());
        all.push_back(*std::move(compiled));
    }
    bool several = all.size() > 1;
    for (const Compiled& compiled : all)
        for (const auto& [file, contents] : {std::pair(object_file, &compiled.object.bytes), std::pair(text_file, &compiled.source.text)})
            if (!file.empty())
                if (Status written = write_file(several ? file + "." + compiled.source.entry : file, *contents); !written.ok()) return fail("compile", written);
    const Compiled* compiled = &all[0];
    if (!bundle_directory.empty()) {
        if (arch->backend == "cpu") return fail("compile", "a bundle is a launch on a GPU; --arch cpu has none");
        CheckOptions options;
        options.max_rows = rows;
        Result<PreparedCheck> prepared = prepare_check(*problem, options);
        if (!prepared.ok()) return fail("compile", prepared.status());
        std::vector<BuiltKernel> kernels;
        for (const Compiled& one : all) kernels.push_back({one.source, one.object});
        Result<Bundle> bundle = make_bundle(*compiled->backend, *arch, *prepared, *plan, kernels);
        if (!bundle.ok()) return fail("compile", bundle.status());
        if (Status written = write_bundle(bundle_directory, *bundle); !written.ok()) return fail("compile", written);
    }
    bool wrote = !object_file.empty() || !text_file.empty() || !bundle_directory.empty();
    Json json = {{"arch", arch->name}, {"problem", to_text(*problem)}, {"config", Json::parse(to_json(*config))}};
    if (!several) json.update(resources_json(*compiled, *arch));
    for (const Compiled& one : all)
        if (several) json["kernels"][one.source.entry] = resources_json(one, *arch);
    if (line.json())
        std::printf("%s\n", json.dump(2).c_str());
    else if (resources || !wrote)
        print(json, "");
    return exit_success;
}

}  // namespace tilewright::cli
