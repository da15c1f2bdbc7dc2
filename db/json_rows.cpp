// One table of fields writes and reads a line.
#include "db/json_rows.h"

#include <nlohmann/json.hpp>
#include <variant>

#include "db/rows.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;
using Member = std::variant<double Measurement::*, int Measurement::*, int64_t Measurement::*, std::string Measurement::*>;

struct Field {
    const char* name;
    Member member;
};
const Field fields[] = {
    {"median_us", &Measurement::median_us},
    {"p20_us", &Measurement::p20_us},
    {"p80_us", &Measurement::p80_us},
    {"samples", &Measurement::samples},
    {"error", &Measurement::error},
    {"clock_mhz", &Measurement::clock_mhz},
    {"memory_clock_mhz", &Measurement::memory_clock_mhz},
    {"temperature_c", &Measurement::temperature_c},
    {"energy_j", &Measurement::energy_j},
    {"exclusive", &Measurement::exclusive},
    {"race", &Measurement::race},
    {"place", &Measurement::place},
    {"driver", &Measurement::driver},
    {"host", &Measurement::host},
    {"measured_at", &Measurement::measured_at},
    {"note", &Measurement::note},
};

struct TextField {
    const char* name;
    std::string* value;
};

Status read_value(const Json& value, std::string& out) {
    if (!value.is_string()) return invalid_argument("is no text");
    out = value.get<std::string>();
    return {};
}

Status read_value(const Json& value, double& out) {
    if (!value.is_number()) return invalid_argument("is no number");
    out = value.get<double>();
    return {};
}

template <class Integer>
Status read_value(const Json& value, Integer& out) {
    if (!value.is_number_integer()) return invalid_argument("is no integer");
    const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<Integer>::max());
    if (too_large || value.get<int64_t>() < std::numeric_limits<Integer>::min()) return invalid_argument("is out of range");
    out = static_cast<Integer>(value.get<int64_t>());
    return {};
}

// An object of texts (and units) with exactly the given names.
Status read_object(const Json& object, const char* what, std::initializer_list<TextField> texts, int* units) {
    if (!object.is_object()) return invalid_argument(std::string(what) + " is no object");
    for (const auto& [key, value] : object.items()) {
        Status status = invalid_argument("is not a known field");
        for (const TextField& text : texts) {
            if (key == text.name) status = read_value(value, *text.value);
        }
        if (units && key == "units") status = read_value(value, *units);
        if (!status.ok()) return invalid_argument(std::string(what) + "." + key + " " + status.message());
    }
    return {};
}

Status read_field(const std::string& key, const Json& value, MeasurementRow& row) {
    if (key == "problem") {
        std::string text;
        TILEWRIGHT_RETURN_IF_ERROR(read_value(value, text));
        TILEWRIGHT_ASSIGN_OR_RETURN(row.problem, parse_problem(text));
        return {};
    }
    if (key == "device") {
        DeviceClass& d = row.device;
        return read_object(value, "device", {{"backend", &d.backend}, {"arch", &d.arch}, {"family", &d.family}, {"name", &d.name}}, &d.units);
    }
    if (key == "toolchain") {
        Toolchain& t = row.toolchain;
        return read_object(value, "toolchain", {{"compiler", &t.compiler}, {"flags", &t.flags}, {"kernel_source", &t.kernel_source}}, nullptr);
    }
    if (key == "config") {
        TILEWRIGHT_ASSIGN_OR_RETURN(row.measurement.config, parse_config(value.dump(-1, ' ', false, Json::error_handler_t::replace)));
        return {};
    }
    if (key == "outcome") {
        std::string text;
        TILEWRIGHT_RETURN_IF_ERROR(read_value(value, text));
        TILEWRIGHT_ASSIGN_OR_RETURN(row.measurement.outcome, parse_outcome(text));
        return {};
    }
    for (const Field& field : fields) {
        if (key != field.name) continue;
        return std::visit([&](auto member) { return read_value(value, row.measurement.*member); }, field.member);
    }
    return invalid_argument("is not a known field");
}

}  // namespace

std::string to_json_line(const MeasurementRow& row) {
    Json line;
    line["problem"] = to_text(row.problem);
    line["device"] = {{"backend", row.device.backend}, {"arch", row.device.arch}, {"family", row.device.family}, {"name", row.device.name}, {"units", row.device.units}};
    line["toolchain"] = {{"compiler", row.toolchain.compiler}, {"flags", row.toolchain.flags}, {"kernel_source", row.toolchain.kernel_source}};
    line["config"] = Json::parse(to_json(row.measurement.config));
    line["outcome"] = name(row.measurement.outcome);
    const Measurement unknown;
    for (const Field& field : fields) {
        std::visit([&](auto member) { if (row.measurement.*member != unknown.*member) line[field.name] = row.measurement.*member; }, field.member);
    }
    return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<MeasurementRow> parse_json_line(std::string_view text) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) return invalid_argument("a measurement is a JSON object, not '" + std::string(text.substr(0, 60)) + "'");
    MeasurementRow row;
    for (const char* const needed : {"problem", "device", "config", "outcome"}) {
        if (!line.contains(needed)) return invalid_argument(std::string("field '") + needed + "' is missing");
    }
    for (const auto& [key, value] : line.items()) {
        if (Status status = read_field(key, value, row); !status.ok()) return invalid_argument("field '" + key.substr(0, 60) + "': " + status.message());
    }
    if (row.device.backend.empty() || row.device.arch.empty() || row.device.name.empty() || row.device.units < 1) {
        return invalid_argument("field 'device': backend, arch, name and units (at least 1) are needed");
    }
    TILEWRIGHT_RETURN_IF_ERROR(check_measurement(row.measurement));
    return row;
}

}  // namespace tilewright
