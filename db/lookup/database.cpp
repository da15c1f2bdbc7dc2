// The public face of the lookup.
#include <cstdio>

#include "db/lookup/state.h"

namespace tilewright {

TuningDatabase TuningDatabase::open(DatabaseOptions options) {
    auto state = std::make_unique<State>(std::move(options));
    state->refresh();
    state->start_watching();
    return TuningDatabase(std::move(state));
}

TuningDatabase::TuningDatabase(std::unique_ptr<State> state) : state_(std::move(state)) {}
TuningDatabase::TuningDatabase(TuningDatabase&&) noexcept = default;
TuningDatabase& TuningDatabase::operator=(TuningDatabase&&) noexcept = default;
TuningDatabase::~TuningDatabase() = default;

int TuningDatabase::device(const DeviceClass& device) {
    const std::lock_guard lock(state_->mutex);
    for (size_t i = 0; i < state_->devices.size(); ++i) {
        if (state_->devices[i] == device) return static_cast<int>(i);
    }
    state_->devices.push_back(device);
    return static_cast<int>(state_->devices.size() - 1);
}

LookupResult TuningDatabase::lookup(const Problem& problem, int device, const LookupLimits& limits) const {
    return state_->lookup(problem, device, limits);
}

bool TuningDatabase::refresh() { return state_->refresh(); }

std::vector<DatabaseLayer> TuningDatabase::layers() const {
    const std::lock_guard lock(state_->mutex);
    std::vector<DatabaseLayer> facts;
    for (const lookup::Layer& layer : state_->layers) facts.push_back(layer.facts);
    return facts;
}

std::vector<std::string> TuningDatabase::stale_rows() const {
    const std::lock_guard lock(state_->mutex);
    return {state_->stale.begin(), state_->stale.end()};
}

int64_t TuningDatabase::stale_count() const {
    const std::lock_guard lock(state_->mutex);
    return state_->stale_count;
}

Status TuningDatabase::flush_misses() { return state_->flush_misses(); }

namespace {

std::string join_differences(unsigned bits) {
    std::string words;
    for (const auto& [bit, word] : {std::pair{differs_batch, "batch"}, {differs_heads, "heads"}, {differs_seq_q, "seq_q"},
                                    {differs_seq_kv, "seq_kv"}, {differs_window, "window"}, {differs_device, "device"},
                                    {differs_arch, "arch"}, {differs_toolchain, "toolchain"}, {differs_page, "page"}, {differs_deterministic, "deterministic"},
                                    {differs_packed, "packed"}}) {
        if (bits & bit) words += (words.empty() ? "" : ", ") + std::string(word);
    }
    return words;
}

std::string age(int64_t seconds) {
    constexpr int64_t hour = 3600, day = 24 * hour;
    if (seconds < hour) return "less than an hour ago";
    if (seconds < 2 * day) return std::to_string(seconds / hour) + " h ago";
    return std::to_string(seconds / day) + " days ago";
}

}  // namespace

std::string describe(const LookupResult& result, int64_t now) {
    std::string line = name(result.provenance);
    char number[96];
    if (result.problem.empty()) {
        if (result.median_us <= 0) return line + ": nothing measured is near";
        std::snprintf(number, sizeof number, ": nothing measured is near; the model %s %.4g us", result.database.empty() ? "says" : "said", result.median_us);
        line += number;
        if (result.database.empty()) return line;
        return line.append(", ").append(age(now - result.measured_at)).append(", from ").append(result.database);
    }
    line.append(": measured for ").append(result.problem).append(" on ").append(result.device);
    if (result.provenance != Provenance::exact) {
        std::snprintf(number, sizeof number, ", distance %.2f", result.distance);
        line += number;
    }
    if (result.differences) line += " (" + join_differences(result.differences) + ")";
    std::snprintf(number, sizeof number, ", %.4g us, spread %.1f %%", result.median_us, 100 * result.spread);
    line += number;
    if (result.measured_at > 0) line += ", " + age(now - result.measured_at);
    return line.append(", from ").append(result.database);
}

}  // namespace tilewright
