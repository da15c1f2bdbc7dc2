// Lookup, refresh and the list of misses.
#include "db/lookup/state.h"

#include <bit>
#include <chrono>

namespace tilewright {
namespace {

constexpr size_t smallest_memo = 1024, largest_memo = 65536;  // answers
constexpr size_t most_misses = 10000;
constexpr size_t most_stale_texts = 1000;
// How long a program waits at its end to hand its misses over.
constexpr int miss_wait_ms = 1000;

uint64_t hash_of(const Problem& problem, int device, const LookupLimits& limits) {
    uint64_t hash = lookup::hash_of(problem) ^ static_cast<uint64_t>(device) * 0x9e3779b97f4a7c15ULL;
    if (limits != LookupLimits{}) {
        hash ^= std::bit_cast<uint64_t>(limits.max_error) * 0xff51afd7ed558ccdULL + static_cast<uint64_t>(limits.max_workspace_bytes) + uint64_t{limits.deterministic};
    }
    return hash ^ hash >> 29;
}

int64_t now_seconds() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

TuningDatabase::State::~State() {
    if (watcher_.joinable()) {
        {
            const std::lock_guard lock(mutex);
            stopping_ = true;
        }
        wake_.notify_all();
        watcher_.join();
    }
    // The list is a convenience: a file that cannot be written at the program's end is no reason to disturb it.
    (void)flush_misses();
}

LookupResult TuningDatabase::State::lookup(const Problem& problem, int device, const LookupLimits& limits) {
    const uint64_t hash = hash_of(problem, device, limits);
    {
        const lookup::Readers::Guard guard = readers_.enter();
        const LookupResult* const known = snapshot_.load(std::memory_order_seq_cst)->memo->find(hash, problem, device, limits);
        if (known) return *known;
    }
    return first_lookup(hash, problem, device, limits);
}

LookupResult TuningDatabase::State::first_lookup(uint64_t hash, const Problem& asked, int device, const LookupLimits& limits) {
    Problem problem = asked;
    problem.deterministic = problem.deterministic || (limits.deterministic && problem.operation == Operation::backward);
    std::shared_ptr<const lookup::Index> index;
    const DeviceClass* on = nullptr;
    {
        const std::lock_guard lock(mutex);
        index = owned_.back()->index;
        on = &devices[static_cast<size_t>(device)];
    }
    // The hooks run without the lock: they may be slow, and may look something up themselves.
    std::vector<std::string> found_stale;
    const lookup::Answer answer = search(*index, {problem, *on, limits}, options.hooks, [&](const lookup::Entry& entry, const Config& config, const Status& status) {
        found_stale.push_back(to_text(entry.problem) + " on " + on->name + " in " + index->layer_path(entry) + ": " + to_json(config) + ": " + status.message());
    });
    const std::lock_guard lock(mutex);
    for (std::string& text : found_stale) {
        if (stale.size() < most_stale_texts && stale.insert(std::move(text)).second) ++stale_count;
    }
    const LookupResult result = result_of(*index, answer);
    if (owned_.back()->index != index) return result;  // refreshed meanwhile: the next lookup will search anew
    remember(hash, asked, device, limits, result);
    if (result.provenance != Provenance::exact) note_miss(problem, device);
    return result;
}

LookupResult TuningDatabase::State::result_of(const lookup::Index& index, const lookup::Answer& answer) {
    LookupResult result;
    result.config = answer.config;
    result.provenance = answer.provenance;
    result.median_us = answer.predicted_us;
    if (!answer.entry) return result;
    result.database = intern(index.layer_path(*answer.entry));
    result.median_us = answer.candidate->median_us;
    result.measured_at = answer.candidate->measured_at;
    if (result.provenance == Provenance::predicted) return result;
    result.problem = intern(to_text(answer.entry->problem));
    result.device = intern(index.devices()[answer.entry->device].name);
    result.distance = answer.distance;
    result.differences = answer.differences;
    result.spread = static_cast<double>(answer.candidate->spread);
    result.error = static_cast<double>(answer.candidate->error);
    return result;
}

void TuningDatabase::State::remember(uint64_t hash, const Problem& problem, int device, const LookupLimits& limits, const LookupResult& result) {
    const Snapshot& now = *owned_.back();
    // Another thread may have asked the same meanwhile.
    if (now.memo->find(hash, problem, device, limits) || now.memo->add(hash, problem, device, limits, result)) return;
    const bool can_grow = now.memo->capacity() < largest_memo;
    auto next = std::make_unique<Snapshot>(now.index, std::make_unique<lookup::Memo>(can_grow ? 2 * now.memo->capacity() : smallest_memo));
    if (can_grow) next->memo->take_all(*now.memo);
    next->memo->add(hash, problem, device, limits, result);
    replace(std::move(next));
}

void TuningDatabase::State::replace(std::unique_ptr<const Snapshot> next) {
    snapshot_.store(next.get(), std::memory_order_seq_cst);
    owned_.push_back(std::move(next));
    if (owned_.size() > 1 && readers_.have_left()) owned_.erase(owned_.begin(), owned_.end() - 1);
}

void TuningDatabase::State::note_miss(const Problem& problem, int device) {
    if (!options.log_misses || misses.size() >= most_misses) return;
    Miss& miss = misses[{to_text(problem), device}];
    miss.problem = to_text(problem);
    miss.device = devices[static_cast<size_t>(device)];
    miss.last_asked_at = now_seconds();
    ++miss.count;
}

bool TuningDatabase::State::refresh() {
    const std::lock_guard one_at_a_time(refreshing_);
    std::vector<lookup::Layer> next = lookup::find_layers(options);
    std::shared_ptr<const lookup::Index> before;
    {
        const std::lock_guard lock(mutex);
        const auto unchanged = [](const lookup::Layer& a, const lookup::Layer& b) {
            return a.facts.path == b.facts.path && a.builtin == b.builtin && (a.builtin || (a.settled && a.stamp == lookup::stamp_of(a.facts.path)));
        };
        if (!owned_.empty() && std::equal(layers.begin(), layers.end(), next.begin(), next.end(), unchanged)) return false;
        if (!owned_.empty()) before = owned_.back()->index;
    }
    auto snapshot = std::make_unique<Snapshot>(lookup::read_layers(next), std::make_unique<lookup::Memo>(smallest_memo));
    // Given answers stay good if only something else in the files changed, such as the list of misses.
    const bool same = before && before->contents() == snapshot->index->contents();
    const std::lock_guard lock(mutex);
    layers = std::move(next);
    if (same) return false;
    replace(std::move(snapshot));
    return true;
}

void TuningDatabase::State::start_watching() {
    if (options.watch_interval_ms <= 0) return;
    watcher_ = std::thread([this] {
        std::unique_lock lock(mutex);
        while (!wake_.wait_for(lock, std::chrono::milliseconds(options.watch_interval_ms), [this] { return stopping_; })) {
            lock.unlock();
            refresh();
            lock.lock();
        }
    });
}

Status TuningDatabase::State::flush_misses() {
    std::map<std::pair<std::string, int>, Miss> taken;
    std::string path;
    {
        const std::lock_guard lock(mutex);
        for (const lookup::Layer& layer : layers) {
            if (layer.facts.user) path = layer.facts.path;
        }
        taken.swap(misses);
    }
    if (taken.empty()) return {};
    if (path.empty()) return {StatusCode::unavailable, "there is no user database to remember misses in: neither TILEWRIGHT_DB nor HOME is set"};
    std::vector<Miss> list;
    for (const auto& [key, miss] : taken) list.push_back(miss);
    Result<Store> store = Store::open(path, StoreMode::create, miss_wait_ms);
    Status status = store.ok() ? store->add_misses(list) : store.status();
    if (!status.ok()) {
        const std::lock_guard lock(mutex);
        for (auto& [key, miss] : taken) {
            const auto [at, added] = misses.try_emplace(key, miss);
            if (!added) at->second.count += miss.count;
        }
    }
    return status;
}

}  // namespace tilewright
