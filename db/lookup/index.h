// The immutable table that lookups search: correct measurements of all layers, with no SQLite behind it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/config.h"
#include "tilewright/problem.h"
#include "tilewright/tuning.h"

namespace tilewright::lookup {

// How many of a problem's fastest configs are kept: the first is the winner, the others stand in where it is not legal
// today or not accurate enough, and show how configs fare as problems grow.
constexpr size_t kept_candidates = 8;

struct Candidate {
    uint32_t config = 0;  // index into configs
    double median_us = 0;
    float spread = 0;  // (p80 - p20) / median
    float error = -1;
    int64_t measured_at = 0;
};

// The candidates of one problem on one device class from one layer, the winner first.
struct Entry {
    Problem problem;
    uint64_t hash = 0;        // hash_of(problem)
    uint64_t kind = 0;        // problem_kind(problem): entries of other kinds are never near
    uint32_t device = 0;      // index into devices
    uint32_t layer = 0;       // index into the index's layers, in order of precedence
    uint32_t first = 0;       // into candidates
    uint32_t count = 0;
    bool old_toolchain = false;  // another one has measured this device later
};

// One file's rows, before they are merged.
struct Rows {
    std::vector<DeviceClass> devices;
    std::vector<Config> configs;
    std::vector<Entry> entries;  // with hash and kind
    std::vector<Candidate> candidates;
    std::vector<Entry> predictions;  // the same of what was predicted and not measured
    std::vector<Candidate> predicted;
    int64_t unreadable = 0;  // rows whose problem or config this build does not know
};

class Index {
public:
    // Takes over the rows of a layer. Layers added earlier take precedence: their entry for a problem and device hides later ones.
    void add_layer(const std::string& path, Rows rows);

    // Null if that problem was not measured on that device.
    const Entry* find(const Problem& problem, uint32_t device) const;
    const std::vector<Entry>& entries() const { return entries_; }
    // What a model of some day predicted for problems on architectures, in order of precedence; nothing of it was measured.
    const std::vector<Entry>& predictions() const { return predictions_; }
    const std::vector<DeviceClass>& devices() const { return devices_; }
    const Candidate* candidates(const Entry& entry) const { return candidates_.data() + entry.first; }  // of either kind
    const std::string& layer_path(const Entry& entry) const { return layer_paths_[entry.layer]; }
    // Equal contents in equal order, equal number.
    uint64_t contents() const;
    const Config& config(const Candidate& candidate) const { return configs_[candidate.config]; }

private:
    void grow_slots(size_t filled);  // room for all entries; the first `filled` take theirs
    size_t slot_of(const Problem& problem, uint32_t device, uint64_t hash) const;  // its slot, or the free one where it belongs

    std::vector<std::string> layer_paths_;
    std::vector<DeviceClass> devices_;
    std::vector<Config> configs_;
    std::vector<Entry> entries_;
    std::vector<Entry> predictions_;
    std::vector<Candidate> candidates_;
    // Open addressing, a power of two, at most half full.
    struct Slot {
        uint32_t tag = 0;    // bits of the hash: entries of others are told apart without being touched
        uint32_t entry = 0;  // index into entries_ + 1; 0: free
    };
    std::vector<Slot> slots_;
};

// Equal problems, equal hash. Not stable between builds.
uint64_t hash_of(const Problem& problem);

// Everything in which two problems must agree to be compared by size: operation, dtype, head dimensions, kind of mask, variants.
uint64_t problem_kind(const Problem& problem);

}  // namespace tilewright::lookup
