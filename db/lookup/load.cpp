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

// Takes measurements one after another, those of a problem, device and toolchain together with the winner first, and keeps the
// fastest few of each problem on each device.
class Collector {
public:
    struct Key {
        int64_t problem = -1, device = -1, toolchain = -1;
        bool operator==(const Key&) const = default;
    };

    Collector(Rows& rows, size_t expected) : rows_(rows) {
        rows.entries.reserve(expected);
        rows.candidates.reserve(expected);
        origins_.reserve(expected);
    }

    // One more measurement. True: its candidate is wanted.
    bool add(const Key& key, int64_t measured_at) {
        if (key != key_) begin(key);
        ++measured_;
        latest_ = std::max(latest_, measured_at);
        return rows_.candidates.size() - first_ < kept_candidates;
    }

    // Of the measurement that was added last. A config measured twice counts once: those of the latest race come first.
    void keep(const Candidate& candidate) {
        for (size_t i = first_; i < rows_.candidates.size(); ++i)
            if (rows_.candidates[i].config == candidate.config) return;
        rows_.candidates.push_back(candidate);
    }

    void finish() {
        begin({});
        for (size_t i = 0; i < rows_.entries.size(); ++i) rows_.entries[i].old_toolchain = newest_[rows_.entries[i].device].second != origins_[i].toolchain;
    }

    // Where an entry came from, until its problem is known.
    struct Origin {
        int64_t problem = 0, toolchain = 0;
        uint32_t measured = 0;
    };
    // One an entry.
    const std::vector<Origin>& origins() const { return origins_; }

private:
    // Ends the group of the key before.
    void begin(const Key& key) {
        if (key_ != Key{}) end();
        key_ = key;
        latest_ = 0, measured_ = 0;
        first_ = rows_.candidates.size();
    }

    void end() {
        const auto device = static_cast<size_t>(key_.device);
        if (newest_.size() <= device) newest_.resize(device + 1);
        auto& [latest, toolchain] = newest_[device];
        if (latest_ >= latest) latest = latest_, toolchain = key_.toolchain;
        const auto count = static_cast<uint32_t>(rows_.candidates.size() - first_);
        if (count == 0) return;
        Entry entry;
        entry.device = static_cast<uint32_t>(key_.device);
        entry.first = static_cast<uint32_t>(first_);
        entry.count = count;
        if (!origins_.empty() && origins_.back().problem == key_.problem && rows_.entries.back().device == entry.device) {
            // Another toolchain's: the later one counts, among equals the later row, as in the view.
            const bool later = latest_ >= entry_latest_;
            const auto from = rows_.candidates.begin() + (later ? rows_.entries.back().first : entry.first);
            rows_.candidates.erase(from, from + (later ? rows_.entries.back().count : entry.count));
            if (!later) return;
            entry.first = rows_.entries.back().first;
            rows_.entries.pop_back();
            origins_.pop_back();
        }
        rows_.entries.push_back(entry);
        origins_.push_back({key_.problem, key_.toolchain, measured_});
        entry_latest_ = latest_;
    }

    Rows& rows_;
    Key key_;
    int64_t latest_ = 0, entry_latest_ = 0;  // when the group and the last entry's group were last measured
    uint32_t measured_ = 0;
    size_t first_ = 0;
    std::vector<std::pair<int64_t, int64_t>> newest_;  // of each device: when it was last measured, by which toolchain
    std::vector<Origin> origins_;
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

// Gives the entries, which lie in the order of their problems' ids, their problems. Those of problems that are not there or not
// valid go, and their measurements are counted as not readable.
Status read_problems(sqlite::Connection& connection, const std::vector<Collector::Origin>& origins, Rows& rows) {
    std::vector<Entry>& entries = rows.entries;
    size_t at = 0, kept = 0;
    const auto drop_before = [&](int64_t id) {
        for (; at < entries.size() && origins[at].problem < id; ++at) rows.unreadable += origins[at].measured;
    };
    TILEWRIGHT_RETURN_IF_ERROR(connection.for_each_row({"id, text", "problem"}, [&](const sqlite::RowValues& row) {
        const int64_t id = row.integer(0);
        drop_before(id);
        if (at == entries.size() || origins[at].problem != id) return;
        const Result<Problem> problem = parse_problem(row.text(1));
        if (!problem.ok()) return drop_before(id + 1);
        for (; at < entries.size() && origins[at].problem == id; ++at, ++kept) {
            if (kept != at) entries[kept] = entries[at];
            entries[kept].problem = *problem;
        }
    }));
    drop_before(std::numeric_limits<int64_t>::max());
    entries.resize(kept);
    return {};
}

}  // namespace

Result<Rows> load_rows(Store& store) {
    sqlite::Connection& connection = store.state().connection;
    TILEWRIGHT_RETURN_IF_ERROR(connection.execute("BEGIN"));
    struct End {
        sqlite::Connection& connection;
        ~End() { (void)connection.execute("COMMIT"); }  // nothing was written; the connection's end would do as well
    } end{connection};

    Rows rows;
    Ids devices, configs;
    TILEWRIGHT_RETURN_IF_ERROR(connection.for_each_row({"id, backend, arch, family, name, units", "device"}, [&](const sqlite::RowValues& row) {
        devices.add(row.integer(0), rows.devices.size());
        rows.devices.push_back({std::string(row.text(1)), std::string(row.text(2)), std::string(row.text(3)), std::string(row.text(4)), static_cast<int>(row.integer(5))});
    }));
    TILEWRIGHT_RETURN_IF_ERROR(connection.for_each_row({"id, json", "config"}, [&](const sqlite::RowValues& row) {
        const Result<Config> parsed = parse_config(row.text(1));
        if (!parsed.ok()) return;
        configs.add(row.integer(0), rows.configs.size());
        rows.configs.push_back(*parsed);
    }));
    TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t problems, connection.integer("SELECT coalesce(max(id), 0) FROM problem"));
    const auto expected = static_cast<size_t>(std::clamp<int64_t>(problems, 0, 1 << 20));
    Collector collector(rows, expected);
    TILEWRIGHT_RETURN_IF_ERROR(connection.for_each_row(
        {"problem, device, toolchain, measured_at, config, median_us, p20_us, p80_us, error", "measurement INDEXED BY measurement_correct", "outcome = 1",
         "problem, device, toolchain, race DESC, place, median_us, measured_at, config"},
        [&](const sqlite::RowValues& row) {
            const uint32_t* const device = devices.find(row.integer(1));
            const int64_t measured_at = row.integer(3);
            if (!device) ++rows.unreadable;
            if (!device || !collector.add({row.integer(0), *device, row.integer(2)}, measured_at)) return;
            if (const uint32_t* const config = configs.find(row.integer(4))) {
                collector.keep(make_candidate(*config, row.real(5), row.real(6), row.real(7), row.real(8), measured_at));
            } else {
                ++rows.unreadable;
            }
        }));
    collector.finish();
    TILEWRIGHT_RETURN_IF_ERROR(read_problems(connection, collector.origins(), rows));
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
    Collector collector(rows, problems.size());
    for (const auto& [key, m] : sorted) {
        if (!collector.add({key[0], key[1], key[2]}, m->measured_at)) continue;
        collector.keep(make_candidate(static_cast<uint32_t>(number_of(rows.configs, m->config)), m->median_us, m->p20_us, m->p80_us, m->error, m->measured_at));
    }
    collector.finish();
    for (size_t i = 0; i < rows.entries.size(); ++i) rows.entries[i].problem = problems[static_cast<size_t>(collector.origins()[i].problem)];
    return rows;
}

}  // namespace tilewright::lookup
