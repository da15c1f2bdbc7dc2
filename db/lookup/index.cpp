// Merging layers into one table, and finding exact entries in it.
#include "db/lookup/index.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace tilewright::lookup {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    return hash ^ (hash >> 32);
}

uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

}  // namespace

uint64_t problem_kind(const Problem& p) {
    // Where both sides are unbounded nothing hangs on the alignment.
    const bool masked = p.window_left != -1 || p.window_right != -1;
    uint64_t kind = static_cast<uint64_t>(p.operation);
    kind = kind << 4 | static_cast<uint64_t>(p.dtype);
    kind = kind << 16 | static_cast<uint64_t>(p.head_dim);
    kind = kind << 16 | static_cast<uint64_t>(p.head_dim_v);
    // Causal is a kind of its own: it is by far the commonest mask and needs the fewest masked tiles.
    kind = kind << 2 | (p.window_right == -1 ? 0U : p.window_right == 0 ? 1U : 2U);
    kind = kind << 1 | (p.window_left == -1 ? 0U : 1U);
    kind = kind << 1 | (masked && p.alignment == Alignment::top_left ? 1U : 0U);
    return kind << 4 | uint64_t{p.softcap} << 3 | uint64_t{p.bias} << 2 | uint64_t{p.alibi} << 1 | uint64_t{p.sink};
}

uint64_t hash_of(const Problem& p) {
    const uint64_t small = static_cast<uint64_t>(p.operation) << 56 ^ static_cast<uint64_t>(p.dtype) << 48 ^
                           static_cast<uint64_t>(p.alignment) << 40 ^ static_cast<uint64_t>(p.head_dim) << 20 ^
                           static_cast<uint64_t>(p.head_dim_v) << 4 ^ uint64_t{p.softcap} << 3 ^ uint64_t{p.bias} << 2 ^
                           uint64_t{p.alibi} << 1 ^ uint64_t{p.sink} ^ uint64_t{p.deterministic} << 36;
    // Two chains, so that the multiplications overlap.
    uint64_t left = mix(mix(2, small), static_cast<uint64_t>(p.batch)), right = mix(1, static_cast<uint64_t>(p.seq_q));
    left = mix(left, static_cast<uint64_t>(p.heads_q));
    right = mix(right, static_cast<uint64_t>(p.seq_kv));
    left = mix(left, static_cast<uint64_t>(p.heads_kv));
    right = mix(right, static_cast<uint64_t>(p.window_left) << 32 ^ static_cast<uint64_t>(p.window_right));
    if (p.packed) right = mix(right, static_cast<uint64_t>(p.shortest_q) << 1 ^ 1);
    if (p.operation == Operation::decode || p.packed) left = mix(left, static_cast<uint64_t>(p.page_size) << 32 ^ static_cast<uint64_t>(p.shortest_kv) << 8 ^ static_cast<uint64_t>(p.length_seed));
    return mix(left, right);
}

size_t Index::slot_of(const Problem& problem, uint32_t device, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    for (size_t slot = mix(hash, device) & mask;; slot = (slot + 1) & mask) {
        if (slots_[slot].entry == 0) return slot;
        if (slots_[slot].tag != tag_of(hash)) continue;
        const Entry& entry = entries_[slots_[slot].entry - 1];
        if (entry.hash == hash && entry.device == device && entry.problem == problem) return slot;
    }
}

void Index::grow_slots(size_t filled) {
    size_t size = 16;
    while (size < 2 * entries_.size()) size *= 2;
    slots_.assign(size, {});
    for (size_t i = 0; i < filled; ++i) {
        slots_[slot_of(entries_[i].problem, entries_[i].device, entries_[i].hash)] = {tag_of(entries_[i].hash), static_cast<uint32_t>(i + 1)};
    }
}

uint64_t Index::contents() const {
    uint64_t sum = mix(0, entries_.size());
    for (const std::string& path : layer_paths_) sum = mix(sum, std::hash<std::string>()(path));
    for (const DeviceClass& device : devices_) {
        for (const std::string* text : {&device.backend, &device.arch, &device.family, &device.name}) sum = mix(sum, std::hash<std::string>()(*text));
        sum = mix(sum, static_cast<uint64_t>(device.units));
    }
    for (const Config& config : configs_) {
        for (const ConfigField& field : config_fields()) sum = mix(sum, static_cast<uint64_t>(config.*field.member));
    }
    for (const auto* list : {&entries_, &predictions_}) {
        for (const Entry& entry : *list) sum = mix(sum, entry.hash ^ uint64_t{entry.device} << 32 ^ uint64_t{entry.layer} << 40 ^ entry.count ^ uint64_t{entry.old_toolchain} << 31);
    }
    for (const Candidate& candidate : candidates_) {
        sum = mix(mix(sum, std::bit_cast<uint64_t>(candidate.median_us)), uint64_t{candidate.config} ^ static_cast<uint64_t>(candidate.measured_at) << 24);
        sum = mix(sum, std::bit_cast<uint32_t>(candidate.spread) ^ uint64_t{std::bit_cast<uint32_t>(candidate.error)} << 32);
    }
    return sum;
}

void Index::add_layer(const std::string& path, Rows rows) {
    const auto layer = static_cast<uint32_t>(layer_paths_.size());
    layer_paths_.push_back(path);
    std::vector<uint32_t> device_number;
    for (const DeviceClass& device : rows.devices) {
        const auto known = std::find(devices_.begin(), devices_.end(), device);
        device_number.push_back(static_cast<uint32_t>(known - devices_.begin()));
        if (known == devices_.end()) devices_.push_back(device);
    }
    const auto first_config = static_cast<uint32_t>(configs_.size());
    const auto first_candidate = static_cast<uint32_t>(candidates_.size());
    configs_.insert(configs_.end(), rows.configs.begin(), rows.configs.end());
    for (auto* list : {&rows.candidates, &rows.predicted}) {
        for (Candidate& candidate : *list) candidate.config += first_config;
    }
    if (candidates_.empty()) candidates_ = std::move(rows.candidates);
    else candidates_.insert(candidates_.end(), rows.candidates.begin(), rows.candidates.end());
    const auto first_predicted = static_cast<uint32_t>(candidates_.size());
    candidates_.insert(candidates_.end(), rows.predicted.begin(), rows.predicted.end());
    const auto place = [&](Entry& entry, uint32_t first) {
        entry.device = device_number[entry.device];
        entry.layer = layer;
        entry.first += first;
    };
    for (Entry& entry : rows.predictions) {
        place(entry, first_predicted);
        predictions_.push_back(entry);
    }
    size_t kept = entries_.size();
    if (entries_.empty()) entries_ = std::move(rows.entries);
    else entries_.insert(entries_.end(), rows.entries.begin(), rows.entries.end());
    grow_slots(kept);
    for (size_t i = kept; i < entries_.size(); ++i) {
        Entry& entry = entries_[i];
        place(entry, first_candidate);
        const size_t slot = slot_of(entry.problem, entry.device, entry.hash);
        if (slots_[slot].entry != 0) continue;  // an earlier layer has it
        slots_[slot] = {tag_of(entry.hash), static_cast<uint32_t>(kept + 1)};
        if (kept != i) entries_[kept] = entry;
        ++kept;
    }
    entries_.resize(kept);
}

const Entry* Index::find(const Problem& problem, uint32_t device) const {
    if (entries_.empty()) return nullptr;
    const uint32_t found = slots_[slot_of(problem, device, hash_of(problem))].entry;
    return found == 0 ? nullptr : &entries_[found - 1];
}

}  // namespace tilewright::lookup
