// The T4 results format: what auto-tuners exchange.
#include "db/tools/t4.h"

#include <ctime>
#include <nlohmann/json.hpp>

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

std::string timestamp(int64_t seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    std::tm parts{};
    char text[40] = "";
    if (gmtime_r(&time, &parts)) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S+00:00", &parts);
    return text;
}

int64_t seconds_of(const std::string& text) {
    std::tm parts{};
    if (!strptime(text.c_str(), "%Y-%m-%d%n%H:%M:%S", &parts)) return 0;
    return timegm(&parts);
}

double milliseconds_factor(const std::string& unit) {
    if (unit == "seconds" || unit == "s") return 1e6;
    if (unit == "microseconds" || unit == "us") return 1;
    return unit == "nanoseconds" || unit == "ns" ? 1e-3 : 1e3;
}

Result<MeasurementRow> parse_result(const Json& result, const ImportContext& context) {
    if (!result.is_object() || !result.contains("configuration") || !result.contains("invalidity") || !result["invalidity"].is_string()) {
        return invalid_argument("configuration or invalidity is missing");
    }
    MeasurementRow row{context.problem, context.device, context.toolchain, {}, true};
    Measurement& m = row.measurement;
    TILEWRIGHT_ASSIGN_OR_RETURN(m.config, parse_config(result["configuration"].dump(-1, ' ', false, Json::error_handler_t::replace)));
    TILEWRIGHT_ASSIGN_OR_RETURN(m.outcome, parse_outcome(result["invalidity"].get<std::string>()));
    if (result.contains("timestamp") && result["timestamp"].is_string()) m.measured_at = seconds_of(result["timestamp"].get<std::string>());
    for (const Json& measured : result.value("measurements", Json::array())) {
        if (!measured.is_object() || !measured.contains("value") || !measured["value"].is_number()) continue;
        if (measured.value("name", Json()) == "energy" && measured.value("unit", Json()) == "joules") m.energy_j = measured["value"].get<double>();
        if (measured.value("name", Json()) != "time") continue;
        const Json unit = measured.value("unit", Json());
        m.median_us = measured["value"].get<double>() * milliseconds_factor(unit.is_string() ? unit.get<std::string>() : "");
        m.p20_us = m.p80_us = m.median_us;
    }
    TILEWRIGHT_RETURN_IF_ERROR(check_measurement(m));
    return row;
}

}  // namespace

Result<std::string> to_t4(const std::vector<MeasurementRow>& rows) {
    Json results = Json::array();
    for (const MeasurementRow& row : rows) {
        if (row.problem != rows.front().problem || row.device != rows.front().device) {
            return invalid_argument("a T4 document holds one problem on one device; here are at least " + to_text(rows.front().problem) + " on " +
                                    rows.front().device.name + " and " + to_text(row.problem) + " on " + row.device.name);
        }
        const Measurement& m = row.measurement;
        if (m.outcome == Outcome::predicted || m.outcome == Outcome::imported) continue;  // never run: T4 holds results
        const double none = 0;
        Json runtimes = Json::array();
        if (m.median_us > 0) runtimes = {m.p20_us / 1e3, m.median_us / 1e3, m.p80_us / 1e3};
        Json result;
        result["timestamp"] = timestamp(m.measured_at);
        result["configuration"] = Json::parse(to_json(m.config));
        result["times"] = {{"compilation_time", none}, {"runtimes", runtimes}, {"framework", none}, {"search_algorithm", none}, {"validation", none}};
        result["invalidity"] = name(m.outcome);
        result["correctness"] = m.outcome == Outcome::correct ? 1 : 0;
        result["measurements"] = Json::array();
        if (m.median_us > 0) result["measurements"].push_back({{"name", "time"}, {"value", m.median_us / 1e3}, {"unit", "milliseconds"}});
        if (m.energy_j > 0) result["measurements"].push_back({{"name", "energy"}, {"value", m.energy_j}, {"unit", "joules"}});
        result["objectives"] = {"time"};
        results.push_back(std::move(result));
    }
    const Json document = {{"schema_version", "1.0.0"}, {"results", results}};
    return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::vector<MeasurementRow>> parse_t4(std::string_view text, const ImportContext& context, std::vector<std::string>& refused) {
    const Json document = Json::parse(text, nullptr, false);
    if (!document.is_object() || !document.contains("results") || !document["results"].is_array()) {
        return invalid_argument("not a T4 document: a JSON object with an array 'results' is wanted");
    }
    std::vector<MeasurementRow> rows;
    size_t index = 0;
    for (const Json& result : document["results"]) {
        Result<MeasurementRow> row = parse_result(result, context);
        if (row.ok()) rows.push_back(*std::move(row));
        else refused.push_back("result " + std::to_string(index) + ": " + row.status().message());
        ++index;
    }
    return rows;
}

}  // namespace tilewright
