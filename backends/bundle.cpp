// What a bundle must be, and how it is written.
#include "backends/bundle.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backends/bundle_format.h"
#include "core/scratch_directory.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

const BundleBuffer* find_buffer(const Bundle& bundle, const std::string& name) {
    auto found = std::find_if(bundle.buffers.begin(), bundle.buffers.end(), [&](const BundleBuffer& buffer) { return buffer.name == name; });
    return found == bundle.buffers.end() ? nullptr : &*found;
}

Status validate_launch(const Bundle& bundle, const BundleLaunch& launch) {
    for (size_t i = 0; i < 3; ++i)
        if (launch.grid[i] < 1 || launch.block[i] < 1) return invalid_argument("grid and block must be at least 1 in every dimension");
    auto block = static_cast<int64_t>(launch.arguments.size());
    int64_t end = 0;
    for (const BundleField& field : launch.fields) {
        if (field.offset < end) return invalid_argument("field '" + field.name + "' at " + std::to_string(field.offset) + " overlaps the one before it");
        if (field.size < 1 || field.offset > block - field.size)
            return invalid_argument("field '" + field.name + "' of " + std::to_string(field.size) + " bytes at " + std::to_string(field.offset) +
                                    " is not inside the argument block of " + std::to_string(block));
        end = field.offset + field.size;
        if (field.buffer.empty()) continue;
        const BundleBuffer* buffer = find_buffer(bundle, field.buffer);
        if (!buffer) return invalid_argument("field '" + field.name + "' points into buffer '" + field.buffer + "', which is not there");
        if (field.buffer_offset < 0 || field.buffer_offset > static_cast<int64_t>(buffer->contents.size()))
            return invalid_argument("field '" + field.name + "' points to byte " + std::to_string(field.buffer_offset) + " of a buffer of " +
                                    std::to_string(buffer->contents.size()));
    }
    return {};
}

Status validate_expected(const Bundle& bundle, const BundleExpected& expected) {
    const BundleBuffer* buffer = find_buffer(bundle, expected.buffer);
    if (!buffer) return invalid_argument("'" + expected.name + "' is expected in buffer '" + expected.buffer + "', which is not there");
    if (expected.columns < 1 || expected.values.size() != expected.rows.size() * static_cast<size_t>(expected.columns))
        return invalid_argument("'" + expected.name + "' has " + std::to_string(expected.values.size()) + " values for " +
                                std::to_string(expected.rows.size()) + " rows of " + std::to_string(expected.columns));
    int64_t element = bundle_format::element_bytes(expected.element);
    if (element == 0) return invalid_argument("'" + expected.name + "' has elements '" + expected.element + "'; known are fp32, fp16 and bf16");
    for (const auto& row : expected.rows) {
        int64_t first = 0;
        for (size_t i = 0; i < 3; ++i) first += row[i] * expected.strides[i];
        first = expected.offset + first * element;
        if (first < 0 || first + expected.columns * element > static_cast<int64_t>(buffer->contents.size()))
            return invalid_argument("'" + expected.name + "' expects a row at byte " + std::to_string(first) + " of a buffer of " +
                                    std::to_string(buffer->contents.size()));
    }
    return {};
}

Json field_json(const BundleField& field) {
    Json json = {{"name", field.name}, {"offset", field.offset}, {"size", field.size}, {"kind", field.kind}};
    if (field.kind == "pointer" || field.kind == "tensor_map") {
        json["buffer"] = field.buffer.empty() ? Json() : Json(field.buffer);
        json["buffer_offset"] = field.buffer_offset;
    }
    if (field.kind == "tensor_map") json["dims"] = field.dims, json["strides"] = field.strides, json["box"] = field.box;
    return json;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

Status validate(const Bundle& bundle) {
    for (const BundleBuffer& buffer : bundle.buffers)
        if (!bundle_format::is_file_name(buffer.name)) return invalid_argument("'" + buffer.name + "' cannot be a buffer's name: it names a file");
    if (bundle.launches.empty()) return invalid_argument("a bundle has at least one launch");
    for (const BundleLaunch& launch : bundle.launches) TILEWRIGHT_RETURN_IF_ERROR(validate_launch(bundle, launch));
    for (const BundleExpected& expected : bundle.expected) {
        if (!bundle_format::is_file_name(expected.name)) return invalid_argument("'" + expected.name + "' cannot be a result's name: it names a file");
        TILEWRIGHT_RETURN_IF_ERROR(validate_expected(bundle, expected));
    }
    return {};
}

Status write_bundle(const std::string& directory, const Bundle& bundle) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(bundle));
    std::error_code failed;
    std::filesystem::create_directories(directory, failed);
    if (failed) return {StatusCode::io, "cannot make the directory '" + directory + "': " + failed.message()};

    const bool several = bundle.launches.size() > 1;
    Json json = {{"format", bundle_format::name}, {"version", several ? bundle_format::version_of_several : bundle_format::version_of_one},
                 {"backend", bundle.backend},     {"arch", bundle.arch},
                 {"problem", bundle.problem},     {"toolchain", bundle.toolchain}};
    Status written;
    auto add = [&](const std::string& name, const std::string& contents) {
        if (written.ok()) written = write_file(directory + "/" + name, contents);
        return Json{{"file", name}, {"bytes", contents.size()}};
    };
    for (const BundleLaunch& launch : bundle.launches) {
        const std::string number = several ? "_" + std::to_string(&launch - bundle.launches.data()) : "";
        Json entry = {{"kernel", launch.kernel}, {"grid", launch.grid}, {"block", launch.block}}, config = Json::parse(launch.config, nullptr, false);
        entry["config"] = config.is_discarded() ? Json(launch.config) : config;
        entry["dynamic_shared_bytes"] = launch.dynamic_shared_bytes, entry["static_shared_bytes"] = launch.static_shared_bytes;
        entry["code"] = add("code" + number + ".bin", launch.code);
        entry["arguments"] = add("arguments" + number + ".bin", launch.arguments);
        entry["arguments"]["alignment"] = launch.argument_alignment;
        for (const BundleField& field : launch.fields) entry["arguments"]["fields"].push_back(field_json(field));
        if (several) json["launches"].push_back(std::move(entry));
        else json.update(entry);
    }
    json["buffers"] = Json::array(), json["expected"] = Json::array();
    for (const BundleBuffer& buffer : bundle.buffers) {
        Json entry = add(buffer.name + ".bin", buffer.contents);
        entry["name"] = buffer.name, entry["written"] = buffer.written;
        json["buffers"].push_back(entry);
    }
    for (const BundleExpected& expected : bundle.expected) {
        Json entry = {{"name", expected.name},       {"buffer", expected.buffer},   {"element", expected.element},    {"offset", expected.offset},
                      {"strides", expected.strides}, {"columns", expected.columns}, {"tolerance", expected.tolerance}};
        entry["rows"] = add(expected.name + "_rows.i64", bytes_of(expected.rows));
        entry["values"] = add(expected.name + "_values.f64", bytes_of(expected.values));
        json["expected"].push_back(entry);
    }
    TILEWRIGHT_RETURN_IF_ERROR(written);
    return write_file(directory + "/launch.json", json.dump(2) + "\n");
}

}  // namespace tilewright
