// Finding packed kernels, and whom to believe.
#include "runtime/packed_code.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/sha1.h"
#include "db/pack.h"

namespace tilewright {
namespace {

Status check_writers(const std::string& path, mode_t type) {
    struct stat facts {};
    if (lstat(path.c_str(), &facts) != 0 || (facts.st_mode & S_IFMT) != type) return {StatusCode::unavailable, path + " is no plain " + (type == S_IFDIR ? "folder" : "file")};
    if (facts.st_uid != 0 && facts.st_uid != geteuid()) return {StatusCode::unavailable, path + " belongs to user " + std::to_string(facts.st_uid) + ", not to root or to this one"};
    if (facts.st_mode & 022) return {StatusCode::unavailable, path + " may be written by others than its owner"};
    return {};
}

}  // namespace

const char* library_version() { return TILEWRIGHT_VERSION; }

std::string pack_key(const KernelSource& source, const std::string& arch) { return sha1(arch + '\0' + source.entry + '\0' + source.text); }

Status check_owner(const std::string& path) {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::canonical(std::filesystem::absolute(path, error).parent_path(), error);
    if (error) return {StatusCode::unavailable, "the folder of " + path + ": " + error.message()};
    TILEWRIGHT_RETURN_IF_ERROR(check_writers(folder.string(), S_IFDIR));
    return check_writers(path, S_IFREG);
}

PackedCode::PackedCode(const std::vector<std::string>& paths, const std::string& arch) {
    for (const std::string& path : paths) {
        if (!check_owner(path).ok()) continue;
        Result<Store> store = Store::open(path, StoreMode::read);
        if (!store.ok()) continue;
        const Result<PackFacts> facts = read_pack(*store);
        if (!facts.ok() || facts->library != library_version()) continue;
        if (std::ranges::find(facts->archs, arch) != facts->archs.end()) paths_.push_back(path);
    }
}

std::optional<CodeObject> PackedCode::load(const KernelSource& source, const std::string& arch) const {
    for (const std::string& path : paths_) {
        // Looked at again: it may have been replaced since.
        if (!check_owner(path).ok()) continue;
        Result<Store> store = Store::open(path, StoreMode::read);
        if (!store.ok() || !read_pack(*store).ok()) continue;
        if (Result<std::string> bytes = packed_kernel(*store, pack_key(source, arch), arch); bytes.ok()) return CodeObject{arch, *std::move(bytes), ""};
    }
    return {};
}

}  // namespace tilewright
