// Comparing devices by their databases.
#include "db/tools/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

namespace tilewright {
namespace {

// How much of its best speed a device has with a config that does not work there at all.
constexpr double failed_fraction = 1e-3;

// What all databases know of one problem on one device.
struct Known {
    std::optional<ComparedWinner> winner;
    std::map<std::string, Measurement> tried;  // by config, of the winner's toolchain
};

class Comparer {
public:
    Status read(const std::string& file) {
        TILEWRIGHT_ASSIGN_OR_RETURN(Store store, Store::open(file, StoreMode::read));
        std::map<std::pair<std::string, size_t>, Known> here;
        TILEWRIGHT_RETURN_IF_ERROR(store.for_each([&](const MeasurementRow& row) {
            if (row.newest_toolchain) add(row.measurement, here[{to_text(row.problem), number_of(row.device)}].tried);
            problems_.try_emplace(to_text(row.problem), row.problem);
            return Status();
        }));
        TILEWRIGHT_RETURN_IF_ERROR(store.for_each_best([&](const MeasurementRow& row) {
            const double median_us = row.measurement.median_us;
            here[{to_text(row.problem), number_of(row.device)}].winner = ComparedWinner{row.measurement.config, median_us, useful_flops(row.problem) / median_us / 1e6};
            return Status();
        }));
        for (auto& [key, known] : here) {
            if (known.winner) known_.try_emplace(key, std::move(known));
        }
        return {};
    }

    Comparison finish() {
        Comparison made;
        made.devices = devices_;
        made.portability.assign(devices_.size(), std::vector<Portability>(devices_.size()));
        for (const auto& [text, problem] : problems_) {
            ComparedProblem compared{problem, std::vector<std::optional<ComparedWinner>>(devices_.size())};
            for (size_t device = 0; device < devices_.size(); ++device) {
                if (const auto at = known_.find({text, device}); at != known_.end()) compared.winners[device] = at->second.winner;
            }
            add_portability(text, compared, made);
            if (std::any_of(compared.winners.begin(), compared.winners.end(), [](const auto& winner) { return winner.has_value(); })) {
                made.problems.push_back(std::move(compared));
            }
        }
        // The fractions were summed as logarithms.
        for (auto& row : made.portability) {
            for (Portability& cell : row) cell.fraction = cell.problems > 0 ? std::exp(cell.fraction / cell.problems) : 0;
        }
        return made;
    }

private:
    size_t number_of(const DeviceClass& device) {
        const auto at = std::find(devices_.begin(), devices_.end(), device);
        const auto number = static_cast<size_t>(at - devices_.begin());
        if (at == devices_.end()) devices_.push_back(device);
        return number;
    }

    static void add(const Measurement& m, std::map<std::string, Measurement>& tried) {
        if (m.outcome == Outcome::predicted || m.outcome == Outcome::imported) return;
        const auto [at, added] = tried.try_emplace(to_json(m.config), m);
        // Of several measurements of a config the one from the latest race counts, as it does for winners.
        const auto rank = [](const Measurement& one) { return std::tuple(one.outcome != Outcome::correct, -one.race, one.median_us); };
        if (!added && rank(m) < rank(at->second)) at->second = m;
    }

    void add_portability(const std::string& text, const ComparedProblem& compared, Comparison& made) const {
        for (size_t from = 0; from < devices_.size(); ++from) {
            if (!compared.winners[from]) continue;
            for (size_t to = 0; to < devices_.size(); ++to) {
                const auto at = known_.find({text, to});
                if (at == known_.end()) continue;
                const auto tried = at->second.tried.find(to_json(compared.winners[from]->config));
                if (tried == at->second.tried.end()) continue;
                Portability& cell = made.portability[from][to];
                const bool works = tried->second.outcome == Outcome::correct;
                ++cell.problems;
                cell.failed += !works;
                cell.fraction += std::log(works ? at->second.winner->median_us / tried->second.median_us : failed_fraction);
            }
        }
    }

    std::vector<DeviceClass> devices_;
    std::map<std::string, Problem> problems_;
    std::map<std::pair<std::string, size_t>, Known> known_;
};

std::string escaped(const std::string& text) {
    std::string made;
    for (const char c : text) made += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
    return made;
}

std::string cell(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

}  // namespace

Result<Comparison> compare_databases(const std::vector<std::string>& files) {
    Comparer comparer;
    for (const std::string& file : files) TILEWRIGHT_RETURN_IF_ERROR(comparer.read(file));
    return comparer.finish();
}

std::string to_html(const Comparison& comparison) {
    std::string heads;
    for (const DeviceClass& device : comparison.devices) heads += "<th>" + escaped(device.name) + "<br>" + escaped(device.arch) + "</th>";
    std::string page =
        "<!doctype html><meta charset=\"utf-8\"><title>Tilewright: devices compared</title>\n<style>body{font:14px sans-serif}"
        "table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #bbb;padding:3px 8px;text-align:right}"
        "td:first-child,th:first-child{text-align:left}.b{font-weight:bold}</style>\n<h1>Devices compared</h1>\n<table><tr><th>problem</th>" +
        heads + "</tr>\n";
    for (const ComparedProblem& compared : comparison.problems) {
        double least = INFINITY;
        for (const auto& winner : compared.winners) least = winner ? std::min(least, winner->median_us) : least;
        page += "<tr><td>" + escaped(to_text(compared.problem)) + "</td>";
        for (const auto& winner : compared.winners) {
            if (!winner) page += "<td></td>";
            else page += (winner->median_us == least ? "<td class=\"b\">" : "<td>") + cell("%.1f us<br>", winner->median_us) + cell("%.2f TFLOP/s<br>", winner->tflops) +
                         (winner->share_of_peak > 0 ? cell("%.0f %% of peak<br>", 100 * winner->share_of_peak) : "") + std::to_string(winner->config.block_q) + " x " + std::to_string(winner->config.block_kv) + "</td>";
        }
        page += "</tr>\n";
    }
    page += "</table>\n<h2>Winners of the row's device on the column's device, as a share of its own best</h2>\n<table><tr><th>tuned on</th>" + heads + "</tr>\n";
    for (size_t from = 0; from < comparison.devices.size(); ++from) {
        page += "<tr><td>" + escaped(comparison.devices[from].name) + "</td>";
        for (const Portability& portability : comparison.portability[from]) {
            page += "<td>" + (portability.problems > 0 ? cell("%.0f %%<br>of ", 100 * portability.fraction) + std::to_string(portability.problems) : "") + "</td>";
        }
        page += "</tr>\n";
    }
    return page + "</table>\n";
}

}  // namespace tilewright
