// A tuning database file: open, migrate, insert, query. SQLite stays behind this header.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/config.h"
#include "tilewright/problem.h"
#include "tilewright/status.h"
#include "tilewright/tuning.h"

namespace tilewright {

// What became of a candidate. Stored in databases: frozen.
enum class Outcome : int {
    correct = 1,      // passed the check against the reference and was timed
    constraints = 2,  // outside the search space or over a limit; never compiled
    compile = 3,      // did not compile
    runtime = 4,      // a launch failed or the worker died
    correctness = 5,  // ran, wrong result
    timeout = 6,      // compile or run took too long
    predicted = 7,    // time from the model
    imported = 8,     // from somebody else's table, which holds no time
};
const char* name(Outcome outcome);
Result<Outcome> parse_outcome(std::string_view text);

// What turned a config into machine code.
struct Toolchain {
    std::string compiler;       // name and version
    std::string flags;
    std::string kernel_source;  // hash of the kernels' text
    bool operator==(const Toolchain&) const = default;
};

// One candidate tried once. Times are of one launch.
struct Measurement {
    int64_t id = 0;  // given by the store; grows with time of insertion
    Config config;
    Outcome outcome = Outcome::correct;
    double median_us = 0;  // 0 unless timed or predicted
    double p20_us = 0;
    double p80_us = 0;
    int samples = 0;
    double error = -1;           // ||x - reference|| / ||reference||; -1: not checked
    double clock_mhz = 0;        // 0: not known
    double memory_clock_mhz = 0;
    double temperature_c = 0;
    double energy_j = 0;         // of one launch, warm, without flushes; 0: not known
    int exclusive = -1;          // 1: nobody else used the device; 0: somebody did; -1: not known
    int64_t race = 0;            // candidates measured in turns share when that began, seconds since 1970; 0: measured alone
    int place = 0;               // in that race; 1 won it; 0: measured alone
    std::string driver;
    std::string host;
    int64_t measured_at = 0;     // seconds since 1970 UTC; 0: add() takes the time of insertion
    std::string note;            // why it failed, or what is odd
};

// invalid_argument unless it could be true: times finite, not negative, at most an hour, p20 <= p80, above 0 if correct; a known
// outcome; a finite error.
Status check_measurement(const Measurement& measurement);

// The rows that a measurement hangs on, as ids of one open store.
struct MeasurementKey {
    int64_t problem = 0;
    int64_t device = 0;
    int64_t toolchain = 0;
};

// A measurement with the things it hangs on.
struct MeasurementRow {
    Problem problem;
    DeviceClass device;
    Toolchain toolchain;
    Measurement measurement;
    bool newest_toolchain = true;  // of those that measured this problem on this device
};

struct Miss {
    std::string problem;  // its text
    DeviceClass device;
    int64_t count = 0;
    int64_t last_asked_at = 0;
};

struct StoreInfo {
    std::string path;
    int schema = 0;
    std::string journal;  // "wal", "delete", ...
    bool writable = false;
    int64_t bytes = 0;
    int64_t devices = 0, toolchains = 0, problems = 0, configs = 0, measurements = 0, winners = 0, misses = 0;
    int64_t newest_at = 0;
};

enum class StoreMode {
    read,    // the file must exist; nothing is written, neither beside it
    write,   // the file must exist; it is migrated to today's schema
    create,  // as write; made if absent, with its folder
};

// An open database file. One thread at a time; every process and thread may have its own on the same file.
// Errors: not_found (no such file), invalid_argument (not a Tilewright database: the message says what it is instead),
// unsupported (newer schema), unavailable (locked for longer than the bounded wait, no permission, read-only), io (corrupt,
// I/O error, full disk). After an error nothing is half-written and the store can be used further.
class Store {
public:
    // Waits at most `wait_ms` wherever others hold the file; -1: 2 s for reading, 30 s for writing.
    static Result<Store> open(const std::string& path, StoreMode mode, int wait_ms = -1);
    Store(Store&&) noexcept;
    Store& operator=(Store&&) noexcept;
    ~Store();

    // Find or insert; equal things have one row.
    Result<int64_t> put_device(const DeviceClass& device);
    Result<int64_t> put_toolchain(const Toolchain& toolchain);
    Result<int64_t> put_problem(const Problem& problem);  // valid ones only
    Result<MeasurementKey> put_key(const Problem& problem, const DeviceClass& device, const Toolchain& toolchain);

    // Durable when it returns: neither SIGKILL nor loss of power takes it back. Returns the row's id.
    // invalid_argument if check_measurement() is.
    Result<int64_t> add(const MeasurementKey& key, const Measurement& measurement);
    // Several in one transaction: all or none.
    Status add_all(const std::vector<MeasurementRow>& rows);

    // All that was tried for a key, in the order of insertion: what a resumed run need not try again.
    Result<std::vector<Measurement>> measurements(const MeasurementKey& key);
    // The winner: of the newest toolchain that has correct rows, the first place of the latest race, or without a race the
    // lowest median. not_found if there is none.
    Result<Measurement> best(const Problem& problem, const DeviceClass& device);
    // Every winner / every measurement, one call of `row` each; stops at the first error it returns. Rows whose problem or
    // config this build cannot read are counted in `unreadable`, not fatal.
    Status for_each_best(const std::function<Status(const MeasurementRow&)>& row, int64_t* unreadable = nullptr);
    Status for_each(const std::function<Status(const MeasurementRow&)>& row, int64_t* unreadable = nullptr);

    // Adds to the bounded list of problems that were asked for and not found; the longest unasked ones leave first.
    Status add_misses(const std::vector<Miss>& misses);
    Result<std::vector<Miss>> misses();  // the most asked first
    Status clear_miss(const std::string& problem, const DeviceClass& device);

    // Makes one plain file of it, without free pages or a write-ahead log: fit to be copied and to lie on read-only media.
    Status compact();

    Result<StoreInfo> info();
    // A number that changes whenever anybody commits to the file.
    Result<int64_t> change_counter();
    // Worth knowing although it opened, e.g. "network file system: rollback journal"; else empty.
    const std::string& note() const;

    struct State;  // SQLite lives in it
    State& state() { return *state_; }

private:
    explicit Store(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace tilewright
