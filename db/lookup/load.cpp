// From a file to the index's rows. Opening must be quick, so each table is read once, configs are parsed once each, and of a
// problem's many measurements only the fastest few are looked at in full.
#include "db/lookup/load.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "db/rows.h"
#include "db/store_state.h"

namespace tilewright::lookup {
namespace {

using Ids = std::unordered_map<int64_t, uint32_t>;  // a row's id: its index here

// Measurements of one problem on one device by one toolchain, while they are read, the winner first.
struct Group {
    int64_t problem = 0, device = 0, toolchain = 0;
    int64_t latest = 0;  // when its last was measured
    std::vector<Candidate> candidates;
};

class Collector {
public:
    Collector(Rows& rows, const std::vector<Problem>& problems) : rows_(rows), problems_(problems) {}

    void add(Group group) {
        auto& [latest, toolchain] = newest_[group.device];
        if (group.latest >= latest) latest = group.latest, toolchain = group.toolchain;
        if (!pending_.candidates.empty() && pending_.problem == group.problem && pending_.device == group.device) {
            // Ties go to the later toolchain row, as in the view.
            if (group.latest >= pending_.latest && !group.candidates.empty()) pending_ = std::move(group);
            return;
        }
        flush();
        pending_ = std::move(group);
    }

    void finish() {
        flush();
        for (size_t i = 0; i < rows_.entries.size(); ++i) rows_.entries[i].old_toolchain = newest_[rows_.entries[i].device].second != toolchains_[i];
    }

private:
    void flush() {
        if (pending_.candidates.empty()) return;
        Entry entry;
        entry.problem = problems_[static_cast<size_t>(pending_.problem)];
        entry.device = static_cast<uint32_t>(pending_.device);
        entry.first = static_cast<uint32_t>(rows_.candidates.size());
        entry.count = static_cast<uint32_t>(pending_.candidates.size());
        rows_.candidates.insert(rows_.candidates.end(), pending_.candidates.begin(), pending_.candidates.end());
        rows_.entries.push_back(entry);
        toolchains_.push_back(pending_.toolchain);
        pending_.candidates.clear();
    }

    Rows& rows_;
    const std::vector<Problem>& problems_;
    Group pending_;
    std::map<int64_t, std::pair<int64_t, int64_t>> newest_;  // device: latest measurement, its toolchain
    std::vector<int64_t> toolchains_;                        // of each entry
};

void keep(std::vector<Candidate>& candidates, const Candidate& candidate) {
    // A config measured twice counts once: rows come as the winner is chosen, those of the latest race first.
    const auto same = [&](const Candidate& other) { return other.config == candidate.config; };
    if (candidates.size() < kept_candidates && std::none_of(candidates.begin(), candidates.end(), same)) candidates.push_back(candidate);
}

Candidate make_candidate(uint32_t config, double median, double p20, double p80, double error, int64_t measured_at) {
    return {config, median, median > 0 ? static_cast<float>((p80 - p20) / median) : 0.0F, static_cast<float>(error), measured_at};
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
    Ids devices, configs, problem_ids;
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const device, connection.prepare("SELECT id, backend, arch, family, name, units FROM device"));
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, device->step());
        if (!more) break;
        devices.emplace(device->integer(0), static_cast<uint32_t>(rows.devices.size()));
        rows.devices.push_back({std::string(device->text(1)), std::string(device->text(2)), std::string(device->text(3)),
                                std::string(device->text(4)), static_cast<int>(device->integer(5))});
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const config, connection.prepare("SELECT id, json FROM config"));
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, config->step());
        if (!more) break;
        Result<Config> parsed = parse_config(config->text(1));
        if (!parsed.ok()) continue;
        configs.emplace(config->integer(0), static_cast<uint32_t>(rows.configs.size()));
        rows.configs.push_back(*parsed);
    }
    std::vector<Problem> problems;
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const problem, connection.prepare(rows::select_problems));
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, problem->step());
        if (!more) break;
        Result<Problem> read = rows::read_problem(*problem);
        if (!read.ok()) continue;
        problem_ids.emplace(problem->integer(rows::problem_columns), static_cast<uint32_t>(problems.size()));
        problems.push_back(*read);
    }

    Collector collector(rows, problems);
    Group group;
    int64_t previous[3] = {-1, -1, -1};
    bool known = false;
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const row,
                                connection.prepare("SELECT problem, device, toolchain, measured_at, config, median_us, p20_us, p80_us, error"
                                                   " FROM measurement INDEXED BY measurement_correct WHERE outcome = 1"
                                                   " ORDER BY problem, device, toolchain, race DESC, place, median_us, measured_at, config"));
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, row->step());
        const int64_t key[3] = {more ? row->integer(0) : -1, more ? row->integer(1) : -1, more ? row->integer(2) : -1};
        if (!std::equal(key, key + 3, previous)) {
            if (known) collector.add(std::move(group));
            std::copy(key, key + 3, previous);
            const auto on = devices.find(key[1]);
            const auto what = problem_ids.find(key[0]);
            known = more && on != devices.end() && what != problem_ids.end();
            group = {};
            if (known) group.problem = what->second, group.device = on->second, group.toolchain = key[2];
        }
        if (!more) break;
        if (!known) {
            ++rows.unreadable;
            continue;
        }
        const int64_t measured_at = row->integer(3);
        group.latest = std::max(group.latest, measured_at);
        if (group.candidates.size() == kept_candidates) continue;
        const auto with = configs.find(row->integer(4));
        if (with == configs.end()) {
            ++rows.unreadable;
            continue;
        }
        keep(group.candidates, make_candidate(with->second, row->real(5), row->real(6), row->real(7), row->real(8), measured_at));
    }
    collector.finish();
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
    std::vector<const MeasurementRow*> sorted;
    for (const MeasurementRow& row : measured) {
        if (row.measurement.outcome == Outcome::correct) sorted.push_back(&row);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto* left, const auto* right) {
        const Measurement &a = left->measurement, &b = right->measurement;
        return std::tuple(-a.race, a.place, a.median_us) < std::tuple(-b.race, b.place, b.median_us);
    });
    std::map<std::array<int64_t, 3>, Group> groups;
    for (const MeasurementRow* row : sorted) {
        const Measurement& m = row->measurement;
        const std::array<int64_t, 3> key = {number_of(problems, row->problem), number_of(rows.devices, row->device), number_of(toolchains, row->toolchain)};
        Group& group = groups[key];
        group.problem = key[0], group.device = key[1], group.toolchain = key[2];
        group.latest = std::max(group.latest, m.measured_at);
        keep(group.candidates, make_candidate(static_cast<uint32_t>(number_of(rows.configs, m.config)), m.median_us, m.p20_us, m.p80_us, m.error, m.measured_at));
    }
    Collector collector(rows, problems);
    for (auto& [key, group] : groups) collector.add(std::move(group));
    collector.finish();
    return rows;
}

}  // namespace tilewright::lookup
