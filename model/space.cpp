// The search space: candidate values per family, enumeration, ranking.
#include "model/space.h"

#include <algorithm>

#include "backends/cpu/cpu_features.h"
#include "backends/family_text.h"
#include "model/decode_config.h"
#include "model/model.h"
#include "model/space_check.h"

namespace tilewright {
namespace {

using Values = std::vector<int>;

struct FamilyValues {
    Values block_q, block_kv, stages, workers, blocks, overlapped, turns, persistent;
};
FamilyValues values_of(Family family) {
    switch (family) {
        case Family::cpu:
            return {{1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256}, {32, 64, 128, 256, 512}, {1}, {1}, {1}, {0, 1}, {0}, {0}};
        case Family::sm90:
            return {{64, 128, 192}, {32, 48, 64, 80, 96, 112, 128, 160, 176, 192, 256}, {1, 2, 3, 4}, {1, 2, 3}, {1, 2}, {0, 1}, {0, 1}, {0, 1}};
        case Family::sm80:
            return {{16, 32, 64, 128, 192, 256}, {16, 32, 64, 96, 128}, {1, 2, 3}, {1, 2, 4, 8}, {1, 2, 3}, {0, 1}, {0}, {0, 1}};
        case Family::cdna:
            return {{16, 32, 64, 128, 256}, {32, 64, 128}, {1, 2}, {1, 2, 4, 8}, {1, 2, 3, 4}, {0, 1}, {0, 1}, {0}};
        case Family::rdna3:
        case Family::rdna4:
            // With up to five waves per SIMD a lane has all the registers that it can name: blocks 1 to 5 are one kernel.
            return {{16, 32, 64, 128, 256}, {16, 32, 64, 128}, {1, 2}, {1, 2, 4, 8}, {1, 6}, {0, 1}, {0, 1}, {0}};
    }
    return {};
}

// Values up to the first that covers `extent`: larger tiles would only be padding. Tiles of fewer than 16 rows are for
// problems that have no more.
Values covering(Values values, int64_t extent) {
    auto enough = std::lower_bound(values.begin(), values.end(), extent);
    if (enough != values.end()) values.erase(enough + 1, values.end());
    if (values.back() >= 16) std::erase_if(values, [](int value) { return value < 16; });
    return values;
}

struct Ranked {
    Config config;
    double time_us;
};

// How much of K and V, or of Q and dO, the heads that work at the same time, on one die, may take of a cache. All heads at once were never faster on
// sm_90a.
Values sections_of(const Problem& problem, const Arch& arch) {
    if (heads_apart(problem) <= 1) return {0};
    if (arch.family == Family::sm90) return {section_kb_of(arch, 8), section_kb_of(arch, 4), section_kb_of(arch, 2)};
    Values sections = {0};
    for (int64_t kb : {arch.l2_bytes / 1024 / 2, arch.last_level_cache_bytes / arch.dies / 1024 / 2})
        if (kb > sections.back()) sections.push_back(int(kb));
    return sections;
}

std::vector<SpaceField> forward_fields(const Problem& problem, const Arch& arch) {
    FamilyValues values = values_of(kernel_family(dense_spec(problem, {}), arch));
    int64_t group = problem.heads_q / problem.heads_kv;
    bool dot16 = arch.family == Family::cpu && problem.dtype == DType::bf16 && cpu_features().bf16_dot;
    const int64_t least_rows = is_tight(problem, arch) ? 64 : 0;
    return {
        {"block_q", &Config::block_q, covering(values.block_q, std::max(problem.seq_q * group, least_rows))},
        {"block_kv", &Config::block_kv, covering(values.block_kv, problem.seq_kv)},
        {"stages", &Config::stages, values.stages},
        {"workers", &Config::workers, values.workers},
        {"blocks", &Config::blocks, values.blocks},
        {"overlapped", &Config::overlapped, values.overlapped},
        {"turns", &Config::turns, values.turns},
        {"packs_heads", &Config::packs_heads, group > 1 ? Values{0, 1} : Values{0}},
        {"section_kb", &Config::section_kb, sections_of(problem, arch)},
        {"dot16", &Config::dot16, dot16 ? Values{0, 1} : Values{0}},
        {"persistent", &Config::persistent, values.persistent},
    };
}

// block_kv and block_q as the pass over keys has them (backward_plan.h).
std::vector<SpaceField> backward_fields(const Problem& problem, const Arch& arch) {
    bool cpu = arch.family == Family::cpu;
    return {
        {"block_q", &Config::block_q, cpu ? Values{16, 32, 64, 128} : Values{16, 32, 48, 64, 80, 96, 128}},
        {"block_kv", &Config::block_kv, cpu ? Values{16, 32, 64, 128, 256} : Values{16, 32, 64, 128, 192}},
        {"stages", &Config::stages, cpu ? Values{1} : Values{1, 2, 3}},
        {"workers", &Config::workers, cpu ? Values{1} : Values{1, 2, 3, 4}},
        {"section_kb", &Config::section_kb, sections_of(problem, arch)},
        {"dq", &Config::dq, {0, 1, 2}},
        {"persistent", &Config::persistent, arch.family == Family::sm90 ? Values{0, 1} : Values{0}},
    };
}

// The query heads of a group share a tile always. Tiles are 16 rows by warps that share the keys, or 64 by a warpgroup (sm_90a); as many rows as
// warps (other NVIDIA); 16 rows for each wave, however few there are, because waves load together (AMD).
std::vector<SpaceField> decode_fields(const Problem& problem, const Arch& arch) {
    int64_t group = problem.heads_q / problem.heads_kv;
    bool cpu = arch.family == Family::cpu, amd = arch.backend == "amd", copy_engine = kernel_family(dense_spec(problem, {}), arch) == Family::sm90;
    Values rows = cpu ? Values{1, 2, 4, 8, 12, 16, 32} : copy_engine ? Values{16, 64} : Values{16, 32, 64};
    return {
        {"block_q", &Config::block_q, amd ? rows : covering(rows, problem.seq_q * group)},
        {"block_kv", &Config::block_kv, covering(cpu ? Values{32, 64, 128, 256} : Values{16, 32, 64, 128, 256}, problem.seq_kv)},
        {"stages", &Config::stages, cpu ? Values{1} : Values{1, 2, 3, 4}},
        {"workers", &Config::workers, cpu ? Values{1} : copy_engine ? Values{1, 2, 4, 8} : Values{1, 2, 4}},
        {"blocks", &Config::blocks, copy_engine || amd ? Values{1, 2, 3} : Values{1}},
        {"overlapped", &Config::overlapped, cpu ? Values{0} : Values{0, 1}},
        {"packs_heads", &Config::packs_heads, {group > 1}},
        {"early_kb", &Config::early_kb, copy_engine ? Values{0, 64, 128} : Values{0}},
        {"units", &Config::units, cpu ? Values{0, 1, 2, 8} : copy_engine ? Values{0, 2} : Values{0, 1, 2, 4, 6}},
    };
}

}  // namespace

int64_t Space::size() const {
    int64_t size = 1;
    for (const SpaceField& field : fields) size *= int64_t(field.values.size());
    return size;
}

Config Space::at(int64_t index) const {
    Config config;
    for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
        int64_t count = int64_t(field->values.size());
        config.*field->member = field->values[size_t(index % count)];
        index /= count;
    }
    return config;
}

KernelSpec dense_spec(const Problem& problem, const Config& config, KernelKind kind) {
    KernelSpec spec;
    spec.kind = kind;
    spec.problem = problem;
    spec.config = config;
    spec.aligned = problem.head_dim % 8 == 0 && problem.head_dim_v % 8 == 0;
    return spec;
}

Space search_space(const Problem& problem, const Arch& arch) {
    Space space{problem, arch, {}};
    switch (problem.operation) {
        case Operation::forward: space.fields = forward_fields(problem, arch); break;
        case Operation::backward: space.fields = backward_fields(problem, arch); break;
        case Operation::decode: space.fields = decode_fields(problem, arch); break;
    }
    return space;
}

std::vector<Config> enumerate(const Space& space, std::vector<Rejection>* rejected) {
    std::vector<Config> legal;
    for (int64_t index = 0, size = space.size(); index < size; ++index) {
        Config config = space.at(index);
        Constraint constraint;
        Status status = judge(space, config, constraint);
        if (status.ok())
            legal.push_back(config);
        else if (rejected)
            rejected->push_back({config, constraint, status.message()});
    }
    return legal;
}

std::vector<Config> neighbours(const Space& space, const Config& config) {
    std::vector<Config> result;
    for (const SpaceField& field : space.fields) {
        auto above = std::upper_bound(field.values.begin(), field.values.end(), config.*field.member);
        auto below = std::lower_bound(field.values.begin(), field.values.end(), config.*field.member);
        Config changed = config;
        if (below != field.values.begin()) {
            changed.*field.member = *(below - 1);
            if (check(space, changed).ok()) result.push_back(changed);
        }
        if (above != field.values.end()) {
            changed.*field.member = *above;
            if (check(space, changed).ok()) result.push_back(changed);
        }
    }
    return result;
}

std::vector<Config> ranked(const Space& space, size_t count) {
    std::vector<Ranked> candidates;
    for (const Config& config : enumerate(space))
        if (Result<Prediction> prediction = predict(space.problem, config, space.arch); prediction.ok()) candidates.push_back({config, prediction->time_us});
    std::stable_sort(candidates.begin(), candidates.end(), [](const Ranked& a, const Ranked& b) { return a.time_us < b.time_us; });
    std::vector<Config> result;
    for (size_t i = 0; i < std::min(count, candidates.size()); ++i) result.push_back(candidates[i].config);
    return result;
}

Config default_config(const Problem& problem, const Arch& arch) {
    if (problem.operation == Operation::decode) return decode_config(problem, arch, dense_traits(problem).aligned);
    Space space = search_space(problem, arch);
    Config known = default_backward_config(problem, arch, dense_traits(problem).aligned);
    if (problem.operation == Operation::backward && check(space, known).ok()) return known;
    if (std::vector<Config> best = ranked(space, 1); !best.empty()) return best[0];
    if (problem.operation == Operation::backward) return known;
    // Nothing is legal: the candidate that spills least, or at worst one that generate() will refuse with a reason.
    std::vector<Rejection> rejected;
    enumerate(space, &rejected);
    Config least = space.at(0);
    int least_over = INT32_MAX;
    for (const Rejection& rejection : rejected) {
        if (rejection.constraint != Constraint::registers) continue;
        Result<ResourceEstimate> needs = estimate_resources(dense_spec(problem, rejection.config), arch);
        if (int over = needs.ok() ? needs->registers - needs->register_budget : INT32_MAX; over < least_over) least_over = over, least = rejection.config;
    }
    return least;
}

Arch baseline_arch(const Arch& arch) {
    Arch chosen_for = arch;
    if (arch.family == Family::sm90) chosen_for.family = Family::sm80;
    return chosen_for;
}

}  // namespace tilewright
