// Files of the code cache: a line with the SHA-1 of what follows, then the object.
#include "runtime/code_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/scratch_directory.h"
#include "core/sha1.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;
constexpr uintmax_t largest_cache_bytes = uintmax_t{256} << 20;

bool is_own_private_file(const std::string& path) {
    struct stat info {};
    return lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
}

// Oldest first by the time of last use, until the rest fits.
void shrink(const std::string& directory) {
    struct Entry {
        fs::file_time_type time;
        uintmax_t bytes;
        fs::path path;
    };
    std::vector<Entry> entries;
    uintmax_t total = 0;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(directory, error))
        if (file.path().extension() == ".code") {
            entries.push_back({file.last_write_time(error), file.file_size(error), file.path()});
            total += entries.back().bytes;
        }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
    for (const Entry& entry : entries) {
        if (total <= largest_cache_bytes) break;
        fs::remove(entry.path, error);
        total -= entry.bytes;
    }
}

}  // namespace

CodeCache CodeCache::of_user() {
    if (const char* path = std::getenv("TILEWRIGHT_CACHE")) return CodeCache(path);
    if (const char* path = std::getenv("XDG_CACHE_HOME"); path && *path == '/') return CodeCache(std::string(path) + "/tilewright");
    if (const char* home = std::getenv("HOME"); home && *home == '/') return CodeCache(std::string(home) + "/.cache/tilewright");
    return CodeCache("");
}

std::optional<CodeObject> CodeCache::load(const std::string& key, const std::string& arch) const {
    if (directory_.empty()) return {};
    std::string path = directory_ + "/" + key + ".code";
    if (!is_own_private_file(path)) return {};
    Result<std::string> contents = read_file(path);
    if (!contents.ok() || contents->size() < 41) return {};
    std::string bytes = contents->substr(41);
    if (sha1(bytes) != contents->substr(0, 40)) return {};
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now: the least recently used go first
    return CodeObject{arch, std::move(bytes), ""};
}

void CodeCache::store(const std::string& key, const CodeObject& object) const {
    if (directory_.empty()) return;
    std::error_code error;
    fs::create_directories(fs::path(directory_).parent_path(), error);
    mkdir(directory_.c_str(), 0700);
    std::string unfinished = directory_ + "/" + key + "." + std::to_string(getpid()) + ".XXXXXX";
    int file = mkstemp(unfinished.data());  // mode 0600
    if (file < 0) return;
    std::string contents = sha1(object.bytes) + "\n" + object.bytes;
    bool whole = write(file, contents.data(), contents.size()) == static_cast<ssize_t>(contents.size());
    whole = close(file) == 0 && whole;
    if (!whole || rename(unfinished.c_str(), (directory_ + "/" + key + ".code").c_str()) != 0)
        unlink(unfinished.c_str());
    else
        shrink(directory_);
}

std::string code_key(const KernelSource& source, const Arch& arch, const std::string& toolchain) {
    return sha1(toolchain + '\0' + arch.name + '\0' + source.entry + '\0' + source.text);
}

Result<CodeObject> compile_cached(Backend& backend, const KernelSource& source, const Arch& arch, const CodeCache& cache, const PackedCode& packs) {
    if (std::optional<CodeObject> found = packs.load(source, arch.name)) return *std::move(found);
    TILEWRIGHT_ASSIGN_OR_RETURN(std::string toolchain, backend.toolchain());
    std::string key = code_key(source, arch, toolchain);
    if (std::optional<CodeObject> found = cache.load(key, arch.name)) return *std::move(found);
    TILEWRIGHT_ASSIGN_OR_RETURN(CodeObject object, backend.compile(source, arch));
    cache.store(key, object);
    return object;
}

}  // namespace tilewright
