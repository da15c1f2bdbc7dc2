// Reads a bundle back, believing nothing.
#include <cstring>
#include <nlohmann/json.hpp>

#include "backends/bundle.h"
#include "backends/bundle_format.h"
#include "core/scratch_directory.h"

namespace tilewright {
namespace {

using Json = nlohmann::json;

Result<std::string> read_part(const std::string& directory, const Json& entry) {
    auto name = entry.at("file").get<std::string>();
    if (!bundle_format::is_file_name(name)) return invalid_argument("'" + name + "' is no file of a bundle");
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string contents, read_file(directory + "/" + name));
    auto bytes = entry.at("bytes").get<uint64_t>();
    if (contents.size() == bytes) return contents;
    return invalid_argument("'" + name + "' has " + std::to_string(contents.size()) + " bytes; launch.json says " + std::to_string(bytes));
}

template <class T>
Result<std::vector<T>> read_values(const std::string& directory, const Json& entry) {
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string contents, read_part(directory, entry));
    if (contents.size() % sizeof(T) != 0) return invalid_argument("'" + entry.at("file").get<std::string>() + "' is cut off");
    std::vector<T> values(contents.size() / sizeof(T));
    if (!values.empty()) memcpy(values.data(), contents.data(), contents.size());
    return values;
}

BundleField read_field(const Json& json) {
    BundleField field{json.at("name"), json.at("offset"), json.at("size"), json.at("kind"), "", 0, {}, {}, {}};
    if (auto buffer = json.find("buffer"); buffer != json.end() && !buffer->is_null()) field.buffer = buffer->get<std::string>();
    field.buffer_offset = json.value("buffer_offset", int64_t{0});
    if (field.kind == "tensor_map") {
        field.dims = json.at("dims").get<std::vector<int64_t>>();
        field.strides = json.at("strides").get<std::vector<int64_t>>();
        field.box = json.at("box").get<std::vector<int64_t>>();
    }
    return field;
}

Result<BundleExpected> read_expected(const std::string& directory, const Json& json) {
    BundleExpected expected;
    expected.name = json.at("name"), expected.buffer = json.at("buffer"), expected.element = json.at("element");
    expected.offset = json.at("offset"), expected.columns = json.at("columns"), expected.tolerance = json.at("tolerance");
    expected.strides = json.at("strides").get<std::array<int64_t, 3>>();
    TILEWRIGHT_ASSIGN_OR_RETURN(expected.rows, (read_values<std::array<int64_t, 3>>(directory, json.at("rows"))));
    TILEWRIGHT_ASSIGN_OR_RETURN(expected.values, read_values<double>(directory, json.at("values")));
    return expected;
}

Result<BundleLaunch> read_launch(const std::string& directory, const Json& json) {
    BundleLaunch launch;
    launch.kernel = json.at("kernel");
    launch.config = json.at("config").is_string() ? json.at("config").get<std::string>() : json.at("config").dump();
    launch.grid = json.at("grid").get<std::array<int64_t, 3>>(), launch.block = json.at("block").get<std::array<int64_t, 3>>();
    launch.dynamic_shared_bytes = json.at("dynamic_shared_bytes"), launch.static_shared_bytes = json.at("static_shared_bytes");
    TILEWRIGHT_ASSIGN_OR_RETURN(launch.code, read_part(directory, json.at("code")));
    const Json& arguments = json.at("arguments");
    TILEWRIGHT_ASSIGN_OR_RETURN(launch.arguments, read_part(directory, arguments));
    launch.argument_alignment = arguments.at("alignment");
    for (const Json& field : arguments.at("fields")) launch.fields.push_back(read_field(field));
    return launch;
}

Result<Bundle> read(const std::string& directory, const Json& json) {
    if (json.at("format") != bundle_format::name) return invalid_argument("launch.json is of another format");
    const int version = json.at("version");
    if (version != bundle_format::version_of_one && version != bundle_format::version_of_several)
        return invalid_argument("launch.json is of version " + std::to_string(version) + "; this reads versions " + std::to_string(bundle_format::version_of_one) + " and " +
                                std::to_string(bundle_format::version_of_several));
    Bundle bundle;
    bundle.backend = json.at("backend"), bundle.arch = json.at("arch");
    bundle.problem = json.at("problem"), bundle.toolchain = json.at("toolchain");
    const Json launches = version == bundle_format::version_of_one ? Json::array({json}) : json.at("launches");
    for (const Json& entry : launches) {
        TILEWRIGHT_ASSIGN_OR_RETURN(BundleLaunch launch, read_launch(directory, entry));
        bundle.launches.push_back(std::move(launch));
    }
    for (const Json& entry : json.at("buffers")) {
        TILEWRIGHT_ASSIGN_OR_RETURN(std::string contents, read_part(directory, entry));
        bundle.buffers.push_back({entry.at("name"), std::move(contents), entry.at("written")});
    }
    for (const Json& entry : json.at("expected")) {
        TILEWRIGHT_ASSIGN_OR_RETURN(BundleExpected expected, read_expected(directory, entry));
        bundle.expected.push_back(std::move(expected));
    }
    TILEWRIGHT_RETURN_IF_ERROR(validate(bundle));
    return bundle;
}

}  // namespace

Result<Bundle> read_bundle(const std::string& directory) {
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string text, read_file(directory + "/launch.json"));
    Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) return invalid_argument("'" + directory + "/launch.json' is no JSON");
    try {
        return read(directory, json);
    } catch (const Json::exception& error) {
        return invalid_argument("'" + directory + "/launch.json' is malformed: " + error.what());
    }
}

}  // namespace tilewright
