// tilewright explain: what a problem costs on an architecture, and how each tile shape would do, by the model alone.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "model/model.h"
#include "model/space.h"

namespace tilewright::cli {
namespace {

using Json = nlohmann::ordered_json;
using Shape = std::pair<int, int>;  // block_q, block_kv

struct Explanation {
    Problem problem;
    Arch arch;
    int64_t candidates = 0, legal = 0;
    std::vector<std::pair<Config, Prediction>> shapes;  // the best candidate of each tile shape, the best shape first
    std::map<Shape, Rejection> rejected;                // of shapes without a legal candidate, one of those that came furthest
};

Explanation explain(const Problem& problem, const Arch& arch) {
    Explanation result{problem, arch, 0, 0, {}, {}};
    Space space = search_space(problem, arch);
    std::vector<Rejection> rejected;
    std::vector<Config> legal = enumerate(space, &rejected);
    result.candidates = space.size(), result.legal = int64_t(legal.size());
    std::map<Shape, std::pair<Config, Prediction>> best;
    for (const Config& config : legal) {
        Result<Prediction> prediction = predict(problem, config, arch);
        if (!prediction.ok()) continue;
        auto [entry, added] = best.try_emplace({config.block_q, config.block_kv}, config, *prediction);
        if (!added && prediction->time_us < entry->second.second.time_us) entry->second = {config, *prediction};
    }
    for (auto& [shape, entry] : best) result.shapes.push_back(entry);
    std::stable_sort(result.shapes.begin(), result.shapes.end(), [](const auto& a, const auto& b) { return a.second.time_us < b.second.time_us; });
    for (const Rejection& rejection : rejected) {
        Shape shape{rejection.config.block_q, rejection.config.block_kv};
        if (best.contains(shape)) continue;
        auto [entry, added] = result.rejected.try_emplace(shape, rejection);
        if (!added && rejection.constraint > entry->second.constraint) entry->second = rejection;
    }
    return result;
}

Json work_json(const Work& work) {
    return {{"bytes_moved", int64_t(work.bytes)}, {"matrix_flops", int64_t(work.matrix_flops)}, {"exponentials", int64_t(work.exponentials)},
            {"flops_per_byte", work.intensity()}};
}

Json shape_json(const Config& config, const Prediction& p, const Arch& arch) {
    Json json = {{"block_q", config.block_q}, {"block_kv", config.block_kv}, {"config", Json::parse(to_json(config))},
                 {"threads", p.resources.threads}, {"shared_bytes", p.resources.shared_bytes}, {"shared_bytes_limit", arch.shared_bytes_per_block},
                 {"registers_estimate", p.resources.registers}, {"resident_blocks", p.occupancy.blocks}, {"resident_warps", p.occupancy.warps},
                 {"limited_by", name(p.occupancy.limit)}, {"tiles", p.tiles}};
    json.update(work_json(p.work));
    json.update(Json{{"predicted_us", p.time_us}, {"bound", name(p.bound)}});
    return json;
}

Json to_json(const Explanation& e) {
    Json shapes = Json::array(), rejected = Json::array();
    for (const auto& [config, prediction] : e.shapes) shapes.push_back(shape_json(config, prediction, e.arch));
    for (const auto& [shape, rejection] : e.rejected)
        rejected.push_back({{"block_q", shape.first}, {"block_kv", shape.second}, {"constraint", name(rejection.constraint)}, {"reason", rejection.reason}});
    return {{"problem", to_text(e.problem)},
            {"arch", e.arch.name},
            {"score_matrix_bytes", int64_t(score_matrix_bytes(e.problem))},
            {"compulsory_bytes", int64_t(compulsory_bytes(e.problem))},
            {"useful_flops", int64_t(useful_flops(e.problem))},
            {"roofline_us", roofline_us(e.problem, e.arch)},
            {"standard", work_json(standard_work(e.problem))},
            {"candidates", e.candidates},
            {"legal", e.legal},
            {"default_config", Json::parse(to_json(default_config(e.problem, e.arch)))},
            {"tile_shapes", shapes},
            {"rejected_tile_shapes", rejected}};
}

void print_table(const Explanation& e, size_t top) {
    Work standard = standard_work(e.problem);
    std::printf("%s on %s\n\n", to_text(e.problem).c_str(), e.arch.name.c_str());
    std::printf("score matrix         %.0f bytes (%s): tiling never writes it\n", score_matrix_bytes(e.problem), human_bytes(score_matrix_bytes(e.problem)).c_str());
    std::printf("standard attention   moves %s: %.0f operations per byte\n", human_bytes(standard.bytes).c_str(), standard.intensity());
    std::printf("any kernel           moves %s at least and takes %.1f us at least\n", human_bytes(compulsory_bytes(e.problem)).c_str(), roofline_us(e.problem, e.arch));
    std::printf("candidates           %lld, legal %lld; the best of each tile shape, by the model:\n\n", (long long)e.candidates, (long long)e.legal);
    std::string shared = (e.arch.backend == "cpu" ? "L2 of " : "shared of ") + human_bytes(double(e.arch.shared_bytes_per_block));
    std::printf("%9s  %7s  %20s  %9s  %6s  %-13s  %10s  %10s  %12s  %s\n", "tile", "threads", shared.c_str(), "registers", "blocks", "limited by", "moved", "flops/byte",
                "predicted us", "bound");
    size_t shown = 0;
    for (const auto& [config, p] : e.shapes) {
        if (top > 0 && shown++ == top) break;
        std::string tile = std::to_string(config.block_q) + "x" + std::to_string(config.block_kv), registers = p.resources.registers ? std::to_string(p.resources.registers) : "-";
        std::printf("%9s  %7d  %20s  %9s  %6d  %-13s  %10s  %10.0f  %12.1f  %s\n", tile.c_str(), p.resources.threads, human_bytes(double(p.resources.shared_bytes)).c_str(),
                    registers.c_str(), p.occupancy.blocks, name(p.occupancy.limit), human_bytes(p.work.bytes).c_str(), p.work.intensity(), p.time_us, name(p.bound));
    }
    if (top > 0 && e.shapes.size() > top) std::printf("  and %zu more: --top 0 shows all\n", e.shapes.size() - top);
    if (!e.rejected.empty()) std::printf("\ntile shapes that cannot run:\n");
    for (const auto& [shape, rejection] : e.rejected) std::printf("%4dx%-4d  %s\n", shape.first, shape.second, rejection.reason.c_str());
    std::printf("\nuntuned choice       %s\n", tilewright::to_json(default_config(e.problem, e.arch)).c_str());
    std::printf("Times are predictions of a model, not measurements: 'tilewright tune' measures.\n");
}

}  // namespace

int explain_command(const Arguments& arguments) {
    CommandLine line("explain", "shows what a problem costs on an architecture and how each tile shape would do; needs no device");
    ProblemOptions problem_options;
    std::string arch_name = "cpu";
    int top = 12;
    problem_options.add_to(line);
    line.option("arch", &arch_name, "NAME", "architecture: sm_90a, gfx942, cpu ...");
    line.option("top", &top, "N", "tile shapes to show, 0: all");
    line.example("tilewright explain --problem forward:b1,hq1,hkv1,sq4096,skv4096,d64,bf16 --arch sm_90a");
    if (auto exit = line.parse(arguments)) return *exit;
    Result<Problem> problem = problem_options.problem();
    if (!problem.ok()) return fail("explain", problem.status());
    Result<Arch> arch = arch_named(arch_name);
    if (!arch.ok()) return fail("explain", arch.status());
    if (top < 0) return fail("explain", "--top is " + std::to_string(top) + "; it must be 0 or more");
    Explanation explanation = explain(*problem, *arch);
    if (line.json()) std::printf("%s\n", to_json(explanation).dump(2).c_str());
    else print_table(explanation, size_t(top));
    return exit_success;
}

}  // namespace tilewright::cli
