// Temporary directories and whole-file input and output.
#include "core/scratch_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/descriptor.h"

namespace tilewright {
namespace {

Status io_error(const std::string& what, const std::string& path) { return {StatusCode::io, what + " '" + path + "': " + strerror(errno)}; }

}  // namespace

Result<ScratchDirectory> ScratchDirectory::create() {
    const char* folder = getenv("TMPDIR");
    std::string path = std::string(folder && *folder ? folder : "/tmp") + "/tilewright-XXXXXX";
    if (!mkdtemp(path.data())) return io_error("cannot make a temporary directory", path);
    return ScratchDirectory(path);
}

ScratchDirectory::~ScratchDirectory() {
    std::error_code ignored;  // what cannot be removed is the system's to clean
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<std::string> read_file(const std::string& path) {
    Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return io_error("cannot open", path);
    std::string contents;
    char buffer[1 << 16];
    while (true) {
        ssize_t count = read(file.get(), buffer, sizeof buffer);
        if (count == 0) return contents;
        if (count < 0 && errno != EINTR) return io_error("cannot read", path);
        if (count > 0) contents.append(buffer, count);
    }
}

Status write_file(const std::string& path, std::string_view contents) {
    Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return io_error("cannot create", path);
    while (!contents.empty()) {
        ssize_t count = write(file.get(), contents.data(), contents.size());
        if (count < 0 && errno != EINTR) {
            Status failure = io_error("cannot write", path);
            struct stat about {};
            if (fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode)) unlink(path.c_str());  // never a device or a pipe
            return failure;
        }
        if (count > 0) contents.remove_prefix(count);
    }
    return {};
}

}  // namespace tilewright
