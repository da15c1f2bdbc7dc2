// From a file to the index's rows. Opening must be quick, so each table is read once and in its order, texts are parsed once each, and
// of a problem's many measurements only the fastest few are looked at in full.
#include "db/lookup/load.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "db/store_state.h"

namespace tilewright::lookup {
namespace {

// The kept measurements of one problem, device and toolchain, until the problem's text is read.
struct Group {
    int64_t problem = 0, toolchain = 0;
    uint32_t device = 0, first = 0, count = 0;  // as Entry's
    uint32_t measured = 0;                      // of them all, kept or not
};

// Takes measurements one after another, those of a problem, device and toolchain together with the winner first, and keeps the
// fastest few of each problem on each device.
class Collector {
public:
    struct Key {
        int64_t problem = -1, device = -1, toolchain = -1;
        bool operator==(const Key&) const = default;
    };

    explicit Collector(std::vector<Candidate>& candidates) : candidates_(candidates) {}
    void expect(size_t groups) {
        candidates_.reserve(groups);
        groups_.reserve(groups);
    }

    // One more measurement. True: its candidate is wanted.
    bool add(const Key& key, int64_t measured_at) {
        if (key != key_) begin(key);
        ++measured_;
        latest_ = std::max(latest_, measured_at);
        return candidates_.size() - first_ < kept_candidates;
    }

    // Of the measurement that was added last. A config measured twice counts once: those of the latest race come first.
    void keep(const Candidate& candidate) {
        for (size_t i = first_; i < candidates_.size(); ++i)
            if (candidates_[i].config == candidate.config) return;
        candidates_.push_back(candidate);
    }

    // One for each problem and device, in the order in which they came.
    const std::vector<Group>& finish() {
        begin({});
        return groups_;
    }
    bool is_old(const Group& group) const { return newest_[group.device].second != group.toolchain; }

private:
    // Ends the group of the key before.
    void begin(const Key& key) {
        if (key_ != Key{}) end();
        key_ = key;
        latest_ = 0, measured_ = 0;
        first_ = candidates_.size();
    }

    void end() {
        const auto device = static_cast<size_t>(key_.device);
        if (newest_.size() <= device) newest_.resize(device + 1);
        auto& [latest, toolchain] = newest_[device];
        if (latest_ >= latest) latest = latest_, toolchain = key_.toolchain;
        Group group{key_.problem, key_.toolchain, static_cast<uint32_t>(key_.device), static_cast<uint32_t>(first_), static_cast<uint32_t>(candidates_.size() - first_), measured_};
        if (group.count == 0) return;
        if (!groups_.empty() && groups_.back().problem == group.problem && groups_.back().device == group.device) {
            // Another toolchain's: the later one counts, among equals the later row, as in the view.
            const bool later = latest_ >= group_latest_;
            const Group& gone = later ? groups_.back() : group;
            const auto from = candidates_.begin() + gone.first;
            candidates_.erase(from, from + gone.count);
            if (!later) return;
            group.first = gone.first;
            groups_.pop_back();
        }
        groups_.push_back(group);
        group_latest_ = latest_;
    }

    std::vector<Candidate>& candidates_;
    Key key_;
    int64_t latest_ = 0, group_latest_ = 0;  // when the present and the last group were last measured
    uint32_t measured_ = 0;
    size_t first_ = 0;
    std::vector<std::pair<int64_t, int64_t>> newest_;  // of each device: when it was last measured, by which toolchain
    std::vector<Group> groups_;
};

Candidate make_candidate(uint32_t config, double median, double p20, double p80, double error, int64_t measured_at) {
    return {config, median, median > 0 ? static_cast<float>((p80 - p20) / median) : 0.0F, static_cast<float>(error), measured_at};
}

// A few rows' ids and their indices here; the same one is often asked for again and again.
class Ids {
public:
    void add(int64_t id, size_t index) { indices_.emplace(id, static_cast<uint32_t>(index)); }
    const uint32_t* find(int64_t id) {
        if (id == last_id_ && last_) return last_;
        const auto found = indices_.find(id);
        if (found == indices_.end()) return nullptr;
        last_id_ = id;
        return last_ = &found->second;
    }

private:
    std::unordered_map<int64_t, uint32_t> indices_;
    int64_t last_id_ = 0;
    const uint32_t* last_ = nullptr;
};

void add_entry(std::vector<Entry>& entries, const Problem& problem, const Group& group, bool old_toolchain) {
    Entry& entry = entries.emplace_back();
    entry.problem = problem;
    entry.hash = hash_of(problem), entry.kind = problem_kind(problem);
    entry.device = group.device, entry.first = group.first, entry.count = group.count;
    entry.old_toolchain = old_toolchain;
}

// Makes entries of groups, which lie in the order of their problems' ids, as the problems come in that order. Measurements of problems
// that are not there or not valid are counted as not readable.
class Entries {
public:
    Entries(Collector& collector, std::vector<Entry>& entries, int64_t& unreadable) : collector_(collector), groups_(collector.finish()), entries_(entries), unreadable_(unreadable) {
        entries_.reserve(groups_.size());
    }
    // False: `id` is no group's problem.
    bool wants(int64_t id) {
        drop_before(id);
        return at_ < groups_.size() && groups_[at_].problem == id;
    }
    void give(int64_t id, const Problem& problem) {
        for (; wants(id); ++at_) add_entry(entries_, problem, groups_[at_], collector_.is_old(groups_[at_]));
    }
    void drop_before(int64_t id) {
        for (; at_ < groups_.size() && groups_[at_].problem < id; ++at_) unreadable_ += groups_[at_].measured;
    }

private:
    const Collector& collector_;
    const std::vector<Group>& groups_;
    size_t at_ = 0;
    std::vector<Entry>& entries_;
    int64_t& unreadable_;
};

// A file's tables, each read once.
class Loader {
public:
    Loader(sqlite::Connection& connection, Rows& rows) : connection_(connection), rows_(rows) {}

    Status read_devices() {
        return connection_.for_each_row({"id, backend, arch, family, name, units", "device"}, [&](const sqlite::RowValues& row) {
            devices_.add(row.integer(0), rows_.devices.size());
            rows_.devices.push_back({std::string(row.text(1)), std::string(row.text(2)), std::string(row.text(3)), std::string(row.text(4)), static_cast<int>(row.integer(5))});
        });
    }

    Status read_configs() {
        return connection_.for_each_row({"id, json", "config"}, [&](const sqlite::RowValues& row) {
            const Result<Config> parsed = parse_config(row.text(1));
            if (!parsed.ok()) return;
            configs_.add(row.integer(0), rows_.configs.size());
            rows_.configs.push_back(*parsed);
        });
    }

    Status read_measurements() {
        TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t last, connection_.integer("SELECT coalesce(max(id), 0) FROM problem"));
        measured_.expect(static_cast<size_t>(std::clamp<int64_t>(last, 0, 1 << 20)));
        return connection_.for_each_row(
            {"problem, device, toolchain, measured_at, config, median_us, p20_us, p80_us, error", "measurement INDEXED BY measurement_correct", "outcome = 1",
             "problem, device, toolchain, race DESC, place, median_us, measured_at, config"},
            [&](const sqlite::RowValues& row) {
                const uint32_t* const config = take(measured_, row);
                if (config) measured_.keep(make_candidate(*config, row.real(5), row.real(6), row.real(7), row.real(8), row.integer(3)));
            });
    }

    Status read_predictions() {
        return connection_.for_each_row({"problem, device, toolchain, measured_at, config, median_us", "measurement INDEXED BY measurement_predicted", "outcome = 7",
                                         "problem, device, toolchain, median_us, measured_at, config"},
                                        [&](const sqlite::RowValues& row) {
                                            const uint32_t* const config = take(predicted_, row);
                                            if (config) predicted_.keep(make_candidate(*config, row.real(5), 0, 0, -1, row.integer(3)));
                                        });
    }

    Status read_problems() {
        Entries measured(measured_, rows_.entries, rows_.unreadable), predicted(predicted_, rows_.predictions, rows_.unreadable);
        TILEWRIGHT_RETURN_IF_ERROR(connection_.for_each_row({"id, text", "problem"}, [&](const sqlite::RowValues& row) {
            const int64_t id = row.integer(0);
            const bool is_measured = measured.wants(id), is_predicted = predicted.wants(id);
            if (!is_measured && !is_predicted) return;
            const Result<Problem> problem = parse_problem(row.text(1));
            if (!problem.ok()) return measured.drop_before(id + 1), predicted.drop_before(id + 1);
            if (is_measured) measured.give(id, *problem);
            if (is_predicted) predicted.give(id, *problem);
        }));
        measured.drop_before(std::numeric_limits<int64_t>::max());
        predicted.drop_before(std::numeric_limits<int64_t>::max());
        return {};
    }

private:
    // The config's number if the candidate of this row is wanted. Rows begin with problem, device, toolchain, measured_at, config.
    const uint32_t* take(Collector& collector, const sqlite::RowValues& row) {
        const uint32_t* const device = devices_.find(row.integer(1));
        if (!device) ++rows_.unreadable;
        if (!device || !collector.add({row.integer(0), *device, row.integer(2)}, row.integer(3))) return nullptr;
        const uint32_t* const config = configs_.find(row.integer(4));
        if (!config) ++rows_.unreadable;
        return config;
    }

    sqlite::Connection& connection_;
    Rows& rows_;
    Ids devices_, configs_;
    Collector measured_{rows_.candidates}, predicted_{rows_.predicted};
};

}  // namespace

Result<Rows> load_rows(Store& store) {
    sqlite::Connection& connection = store.state().connection;
    TILEWRIGHT_RETURN_IF_ERROR(connection.execute("BEGIN"));
    struct End {
        sqlite::Connection& connection;
        ~End() { (void)connection.execute("COMMIT"); }  // nothing was written; the connection's end would do as well
    } end{connection};
    Rows rows;
    Loader loader(connection, rows);
    TILEWRIGHT_RETURN_IF_ERROR(loader.read_devices());
    TILEWRIGHT_RETURN_IF_ERROR(loader.read_configs());
    TILEWRIGHT_RETURN_IF_ERROR(loader.read_measurements());
    TILEWRIGHT_RETURN_IF_ERROR(loader.read_predictions());
    TILEWRIGHT_RETURN_IF_ERROR(loader.read_problems());
    return rows;
}

Rows rows_of(const std::vector<MeasurementRow>& measured) {
    Rows rows;
    std::vector<Problem> problems;
    std::vector<Toolchain> toolchains;
    const auto number_of = [](auto& list, const auto& value) {
        const auto at = std::find(list.begin(), list.end(), value);
        const auto number = static_cast<int64_t>(at - list.begin());
        if (at == list.end()) list.push_back(value);
        return number;
    };
    std::vector<std::pair<std::array<int64_t, 3>, const Measurement*>> sorted;
    for (const MeasurementRow& row : measured) {
        if (row.measurement.outcome != Outcome::correct) continue;
        sorted.push_back({{number_of(problems, row.problem), number_of(rows.devices, row.device), number_of(toolchains, row.toolchain)}, &row.measurement});
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& left, const auto& right) {
        const Measurement &a = *left.second, &b = *right.second;
        return std::tuple(left.first, -a.race, a.place, a.median_us) < std::tuple(right.first, -b.race, b.place, b.median_us);
    });
    Collector collector(rows.candidates);
    for (const auto& [key, m] : sorted) {
        if (!collector.add({key[0], key[1], key[2]}, m->measured_at)) continue;
        collector.keep(make_candidate(static_cast<uint32_t>(number_of(rows.configs, m->config)), m->median_us, m->p20_us, m->p80_us, m->error, m->measured_at));
    }
    for (const Group& group : collector.finish()) add_entry(rows.entries, problems[static_cast<size_t>(group.problem)], group, collector.is_old(group));
    return rows;
}

}  // namespace tilewright::lookup
