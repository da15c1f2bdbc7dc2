// Kinds of file systems, folders and first bytes.
#include "db/file_system.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace tilewright {
namespace fs = std::filesystem;

bool is_network_file_system(long type) {
    // f_type is signed on some machines and these numbers use the top bit.
    switch (static_cast<unsigned long>(type) & 0xffffffffUL) {
        case 0x6969:      // NFS
        case 0x517b:      // SMB
        case 0xfe534d42:  // SMB 2
        case 0xff534d42:  // CIFS
        case 0x01021997:  // 9P
        case 0x65735546:  // FUSE: sshfs and many cluster file systems come through it
        case 0x0bd00bd0:  // Lustre
        case 0x47504653:  // GPFS
        case 0x00c36400:  // Ceph
        case 0x5346414f:  // AFS
        case 0x7461636f:  // OCFS2
        case 0x01161970:  // GFS2
        case 0x19830326:  // BeeGFS
        case 0xaad7aaea:  // PanFS
        case 0x6b414653:  // kAFS
            return true;
        default: return false;
    }
}

bool is_on_network(const std::string& path) {
    std::error_code ignored;
    fs::path folder = fs::absolute(path, ignored);
    while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
    struct statfs facts {};
    // A file system that does not answer is treated as one that WAL could harm.
    return ::statfs(folder.c_str(), &facts) != 0 || is_network_file_system(static_cast<long>(facts.f_type));
}

Status make_parent_folder(const std::string& path) {
    const fs::path folder = fs::path(path).parent_path();
    if (folder.empty()) return {};
    std::error_code error;
    fs::create_directories(folder, error);
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) return {};
    const std::string reason = error ? error.message() : "something else of that name is in the way";
    return {StatusCode::unavailable, "the folder " + folder.string() + " cannot be made: " + reason};
}

Status check_database_file(const std::string& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) return {StatusCode::not_found, path + " does not exist"};
    if (error) return {StatusCode::unavailable, path + " cannot be looked at: " + error.message()};
    if (!fs::is_regular_file(status)) return invalid_argument(path + " is not a regular file");
    if (::access(path.c_str(), R_OK) != 0) return {StatusCode::unavailable, path + " cannot be read: " + std::strerror(errno)};
    return {};
}

bool can_write(const std::string& path) {
    if (::access(path.c_str(), F_OK) == 0) return ::access(path.c_str(), W_OK) == 0;
    const std::string folder = fs::path(path).parent_path().string();
    return ::access(folder.empty() ? "." : folder.c_str(), W_OK) == 0;
}

}  // namespace tilewright
