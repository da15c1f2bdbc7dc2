// A private directory for temporary files, and whole files as strings.
#pragma once
#include <string>
#include <string_view>

#include "tilewright/status.h"

namespace tilewright {

// Below TMPDIR (or /tmp), readable by this user alone; removed with everything in it when the object dies.
class ScratchDirectory {
public:
    static Result<ScratchDirectory> create();  // io: cannot be made
    ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
    ScratchDirectory& operator=(ScratchDirectory&& other) noexcept {
        path_.swap(other.path_);
        return *this;
    }
    ~ScratchDirectory();
    const std::string& path() const { return path_; }
    std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

private:
    explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

// io, with the path and the system's reason, if it cannot be done; a failed write leaves no file behind.
Result<std::string> read_file(const std::string& path);
Status write_file(const std::string& path, std::string_view contents);

}  // namespace tilewright
