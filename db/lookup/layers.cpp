// Finding and reading the layers.
#include "db/lookup/layers.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "db/defaults.h"
#include "db/lookup/load.h"
#include "db/store.h"

namespace tilewright {
namespace fs = std::filesystem;
namespace {

std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= text.size();) {
        const size_t end = std::min(text.find(separator, begin), text.size());
        if (end > begin) parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

std::vector<std::string> system_paths() {
    if (const std::string given = environment("TILEWRIGHT_SYSTEM_DB"); !given.empty()) return split(given, ':');
    std::string folders = environment("XDG_DATA_DIRS");
    if (folders.empty()) folders = "/usr/local/share:/usr/share";
    std::vector<std::string> found;
    for (const std::string& folder : split(folders, ':')) {
        std::vector<std::string> here;
        std::error_code absent;  // a folder that is not there or not readable holds nothing for us
        for (fs::directory_iterator at(fs::path(folder) / "tilewright", absent), end; !absent && at != end; at.increment(absent)) {
            if (at->path().extension() == ".db") here.push_back(at->path().string());
        }
        std::sort(here.begin(), here.end());
        found.insert(found.end(), here.begin(), here.end());
    }
    return found;
}

}  // namespace

std::string user_database_path() {
    if (const std::string given = environment("TILEWRIGHT_DB"); !given.empty()) return given;
    // Relative XDG paths are to be ignored, says its specification.
    if (const std::string data = environment("XDG_DATA_HOME"); data.starts_with('/')) return data + "/tilewright/tuning.db";
    if (const std::string home = environment("HOME"); home.starts_with('/')) return home + "/.local/share/tilewright/tuning.db";
    return {};
}

namespace lookup {

FileStamp stamp_of(const std::string& path) {
    const auto time_ns = [](const struct stat& facts) { return int64_t{facts.st_mtim.tv_sec} * 1000000000 + facts.st_mtim.tv_nsec; };
    FileStamp stamp;
    struct stat facts {};
    if (::stat(path.c_str(), &facts) == 0) {
        stamp.device = facts.st_dev;
        stamp.inode = facts.st_ino;
        stamp.size = static_cast<uint64_t>(facts.st_size);
        stamp.changed_ns = time_ns(facts);
    }
    // An empty log is as good as none: opening a file for reading may make one.
    if (::stat((path + "-wal").c_str(), &facts) == 0 && facts.st_size > 0) {
        stamp.log_size = static_cast<uint64_t>(facts.st_size);
        stamp.log_changed_ns = time_ns(facts);
    }
    return stamp;
}

std::vector<Layer> find_layers(const DatabaseOptions& options) {
    std::vector<Layer> layers;
    const auto add = [&](const std::string& path, bool user, bool builtin) {
        Layer layer;
        layer.facts.path = path;
        layer.facts.user = user;
        layer.builtin = builtin;
        layers.push_back(std::move(layer));
    };
    if (options.use_user) {
        const std::string path = options.user_path.empty() ? user_database_path() : options.user_path;
        if (!path.empty()) add(path, true, false);
    }
    if (options.use_system) {
        for (const std::string& path : options.system_paths.empty() ? system_paths() : options.system_paths) add(path, false, false);
    }
    if (options.use_defaults) add("built-in defaults", false, true);
    return layers;
}

namespace {

Result<Rows> read_layer(Layer& layer) {
    if (layer.builtin) return rows_of(default_rows());
    TILEWRIGHT_ASSIGN_OR_RETURN(Store store, Store::open(layer.facts.path, StoreMode::read));
    layer.facts.note = store.note();
    return load_rows(store);
}

// A commit is written to the log, then synced, and only then shown to readers: a log written a moment ago may hold what was
// not to be seen yet, and will not change again when it is. A file that was locked or failed to be read may do better soon.
bool is_settled(const Layer& layer) {
    constexpr int64_t longest_sync_ns = 10'000'000'000;
    timespec now{};
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return false;
    const StatusCode code = layer.facts.status.code();
    if (code == StatusCode::unavailable || code == StatusCode::io) return false;
    return layer.stamp.log_size == 0 || int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec - layer.stamp.log_changed_ns > longest_sync_ns;
}

}  // namespace

std::shared_ptr<const Index> read_layers(std::vector<Layer>& layers) {
    auto index = std::make_shared<Index>();
    for (Layer& layer : layers) {
        layer.facts.note.clear();
        layer.facts.rows = layer.facts.predictions = 0;
        // Before reading: what is committed meanwhile is seen as a change later.
        if (!layer.builtin) layer.stamp = stamp_of(layer.facts.path);
        Result<Rows> rows = read_layer(layer);
        layer.facts.status = rows.status();
        layer.settled = is_settled(layer);
        if (!rows.ok()) continue;
        layer.facts.rows = static_cast<int64_t>(rows->entries.size());
        layer.facts.predictions = static_cast<int64_t>(rows->predictions.size());
        if (rows->unreadable > 0) {
            layer.facts.note += (layer.facts.note.empty() ? "" : "; ") + std::to_string(rows->unreadable) + " measurements of problems or configs that this build does not know";
        }
        index->add_layer(layer.facts.path, *std::move(rows));
    }
    return index;
}

}  // namespace lookup
}  // namespace tilewright
