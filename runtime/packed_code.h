// Kernels that `tilewright pack` compiled elsewhere, for machines without a compiler.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"

namespace tilewright {

// "0.1.0"; packs of another version are not used.
const char* library_version();

// Equal keys, equal kernels of one library: of arch, entry point and text, without the compiler.
std::string pack_key(const KernelSource& source, const std::string& arch);

// Ok if code of this file may be run: it and its folder belong to root or this user, and nobody else may write either. The file is
// plain, not a link.
Status check_owner(const std::string& path);

// The packs among the databases that lookups use. Thread-safe.
class PackedCode {
public:
    PackedCode() = default;
    // Keeps the paths of those that hold kernels for `arch`, were made by this version of the library, are whole by the list of their
    // hashes, and pass check_owner(). Others are left alone: they are databases like any.
    PackedCode(const std::vector<std::string>& paths, const std::string& arch);

    // Nothing if no pack has it or what it has is damaged. Reads the file: a kernel is loaded once.
    std::optional<CodeObject> load(const KernelSource& source, const std::string& arch) const;
    const std::vector<std::string>& paths() const { return paths_; }

private:
    std::vector<std::string> paths_;
};

}  // namespace tilewright
