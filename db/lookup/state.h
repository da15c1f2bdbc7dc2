// What a TuningDatabase owns.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

#include "db/lookup/index.h"
#include "db/lookup/layers.h"
#include "db/lookup/memo.h"
#include "db/lookup/search.h"
#include "db/store.h"

namespace tilewright {

struct TuningDatabase::State {
    // What readers see: replaced as a whole, never changed but for the memo's growth.
    struct Snapshot {
        std::shared_ptr<const lookup::Index> index;
        std::unique_ptr<lookup::Memo> memo;
    };

    explicit State(DatabaseOptions given) : options(std::move(given)) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State();

    LookupResult lookup(const Problem& problem, int device, const LookupLimits& limits);
    bool refresh();
    void start_watching();
    Status flush_misses();

    const DatabaseOptions options;
    std::mutex mutex;                 // over everything but snapshot_ and readers_
    std::deque<DeviceClass> devices;  // at the index of their number
    std::vector<lookup::Layer> layers;
    std::set<std::string> stale;
    int64_t stale_count = 0;
    std::map<std::pair<std::string, int>, Miss> misses;  // by problem and device number

private:
    LookupResult first_lookup(uint64_t hash, const Problem& asked, int device, const LookupLimits& limits);
    // The rest want `mutex` held.
    LookupResult result_of(const lookup::Index& index, const lookup::Answer& answer);
    void remember(uint64_t hash, const Problem& problem, int device, const LookupLimits& limits, const LookupResult& result);
    void note_miss(const Problem& problem, int device);
    void replace(std::unique_ptr<const Snapshot> next);
    std::string_view intern(const std::string& text) { return *texts_.insert(text).first; }

    std::mutex refreshing_;  // one at a time
    lookup::Readers readers_;
    std::atomic<const Snapshot*> snapshot_{nullptr};
    std::vector<std::unique_ptr<const Snapshot>> owned_;  // the current one last; older ones until no reader is left
    std::unordered_set<std::string> texts_;               // what results refer to; nodes stay where they are
    std::thread watcher_;
    std::condition_variable wake_;
    bool stopping_ = false;
};

}  // namespace tilewright
