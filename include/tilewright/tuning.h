// Which config to run a problem with: winners from tuning databases, found in nanoseconds.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/config.h"
#include "tilewright/problem.h"
#include "tilewright/status.h"

namespace tilewright {

// How an answer was found, best first. The numbers cross the C interface and are printed: frozen.
enum class Provenance : int {
    exact = 1,      // this problem, measured on this device class
    nearest = 2,    // another size of the same kind of problem, measured on this device class
    family = 3,     // measured on another device of the same arch, or else of the same family
    predicted = 4,  // chosen by the model, now or by `tune --predict`; nothing measured was near
    heuristic = 5,  // a safe default
};
const char* name(Provenance provenance);

// Devices that are the same for tuning: measurements on one hold for another. What may change between two days on one
// machine (driver, clocks) is kept with the measurement, not here.
struct DeviceClass {
    std::string backend;  // "cpu", "amd", "nvidia"
    std::string arch;     // "gfx942", "sm_90a", "cpu"
    std::string family;   // archs whose winners are worth trying on each other, e.g. "cdna"; empty: only the arch itself
    std::string name;     // as the vendor calls it
    int units = 0;        // multiprocessors, compute units, threads on a CPU
    bool operator==(const DeviceClass&) const = default;
};

// What the caller asks of a config beyond being fast.
struct LookupLimits {
    bool deterministic = false;                                  // of a backward: the same as the problem's
    int64_t max_workspace_bytes = -1;                            // -1: any
    double max_error = std::numeric_limits<double>::infinity();  // measured ||x - reference|| / ||reference||
    bool operator==(const LookupLimits&) const = default;
};

// A config that was not measured, and how it was come by (predicted or heuristic).
struct Suggestion {
    Config config;
    Provenance provenance = Provenance::heuristic;
    double predicted_us = 0;  // 0: not predicted
};

// What the database cannot know by itself: the kernels' and the device's limits of today, and the model. The runtime gives
// both; both may be called from several threads at once. A row from a file is never trusted: every config passes `check`
// before it is returned.
struct LookupHooks {
    // Ok if today's kernels on this device take `config` within `limits`; else why not. Empty: everything passes.
    std::function<Status(const Problem&, const DeviceClass&, const Config&, const LookupLimits&)> check;
    // The answer where nothing measured is near. Must not fail: a legal problem on a known arch has a legal config.
    // Empty: Config{}, heuristic.
    std::function<Suggestion(const Problem&, const DeviceClass&, const LookupLimits&)> suggest;
};

// Bits of LookupResult::differences.
enum Difference : unsigned {
    differs_batch = 1,
    differs_heads = 2,
    differs_seq_q = 4,
    differs_seq_kv = 8,
    differs_window = 16,
    differs_device = 32,     // another device of the same arch
    differs_arch = 64,       // another arch of the same family
    differs_toolchain = 128,  // measured with another kernel source or compiler than the newest in its database
    differs_page = 256,        // pages of another size, or none
    differs_deterministic = 512,  // repeatable or not
    differs_packed = 1024         // sequences lie one behind the other, or do not
};

struct LookupResult {
    Config config;
    Provenance provenance = Provenance::heuristic;
    std::string_view problem;   // the one that was measured; empty unless measured. Valid while the TuningDatabase lives, and followed by a 0
    std::string_view device;    // the one it was measured on; same
    std::string_view database;  // the file it came from, a stored prediction too; same
    double distance = 0;        // 0 for exact; about the number of doublings between the two problems
    unsigned differences = 0;   // Difference bits
    double median_us = 0;       // of the measured problem; predicted time if predicted; 0: unknown
    double spread = 0;          // (p80 - p20) / median of that measurement
    double error = -1;          // its error against the reference; -1: unknown
    int64_t measured_at = 0;    // or predicted and stored; seconds since 1970 UTC; 0: neither
};

// One line for people: "nearest: tuned for forward:..., distance 0.10 (seq_q, seq_kv), 812 us +- 1 %, 3 days ago".
std::string describe(const LookupResult& result, int64_t now);

struct DatabaseOptions {
    // The user database, asked first. Empty: $TILEWRIGHT_DB, else $XDG_DATA_HOME/tilewright/tuning.db, else
    // $HOME/.local/share/tilewright/tuning.db; none of these: no user database, which is no error.
    std::string user_path;
    bool use_user = true;
    // Read-only databases, asked in this order after the user's. Empty: $TILEWRIGHT_SYSTEM_DB (separated by ':'), else
    // tilewright/*.db below each of $XDG_DATA_DIRS (/usr/local/share:/usr/share), by name. The shipped defaults come last.
    std::vector<std::string> system_paths;
    bool use_system = true;
    bool use_defaults = true;
    bool log_misses = true;       // remember in the user database what was asked and not found, for `tune --from-misses`
    int watch_interval_ms = 0;    // > 0: a thread looks for changed files so often; 0: see refresh()
    LookupHooks hooks;
};

// One file (or the built-in defaults) and how it fared.
struct DatabaseLayer {
    std::string path;
    bool user = false;
    Status status;     // why it is not used; ok if it is
    std::string note;  // what is worth knowing although it is used, e.g. that nothing can be written; else empty
    int64_t rows = 0;  // winners that lookups can find
    int64_t predictions = 0;  // problems that something was predicted for, as a stopgap
};

// Immutable tables in memory over the layers. lookup() is safe from any number of threads at any time, also during a refresh.
class TuningDatabase {
public:
    // Never fails: a layer that cannot be read is left out and layers() says why; lookups answer from what is left.
    static TuningDatabase open(DatabaseOptions options = {});
    TuningDatabase(TuningDatabase&&) noexcept;
    TuningDatabase& operator=(TuningDatabase&&) noexcept;
    ~TuningDatabase();  // no lookup may be running

    // The number that stands for a device class in lookup(); equal classes get equal numbers. Takes a lock: ask once.
    int device(const DeviceClass& device);

    // The best known config for a valid problem; always answers. The first question about a problem searches and calls the
    // hooks; later ones take no lock, allocate nothing and cost some tens of nanoseconds.
    LookupResult lookup(const Problem& problem, int device, const LookupLimits& limits = {}) const;

    // Loads what changed on disk; readers go on with the old tables meanwhile. True if anything had changed.
    bool refresh();

    std::vector<DatabaseLayer> layers() const;
    // Rows that were found but did not pass `check`, each reported once: "forward:... on NVIDIA H200: block_q 256 ...".
    std::vector<std::string> stale_rows() const;
    int64_t stale_count() const;
    // Writes the misses seen so far to the user database (also done by the destructor). io or unavailable if it cannot.
    Status flush_misses();

private:
    struct State;
    explicit TuningDatabase(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// Where the user database is, by the rule above; empty if there is no place for one.
std::string user_database_path();

}  // namespace tilewright
