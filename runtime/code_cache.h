// Compiled kernels kept in the user's cache directory, by content: kernel text, architecture and toolchain.
#pragma once
#include <optional>
#include <string>

#include "backends/backend.h"
#include "runtime/packed_code.h"

namespace tilewright {

// Safe for any number of threads and processes: a file is written whole under another name and renamed.
// A cache that cannot be read or written is no error: kernels are then compiled again.
class CodeCache {
public:
    // Below $TILEWRIGHT_CACHE, else $XDG_CACHE_HOME/tilewright, else $HOME/.cache/tilewright; an empty path: no cache.
    static CodeCache of_user();
    explicit CodeCache(std::string directory) : directory_(std::move(directory)) {}

    // Nothing if it is absent, not a plain file of this user closed to others, or its contents do not match their hash.
    std::optional<CodeObject> load(const std::string& key, const std::string& arch) const;
    // Mode 0600, in a directory of mode 0700. The oldest files go when all together pass the limit (256 MiB).
    void store(const std::string& key, const CodeObject& object) const;

private:
    std::string directory_;
};

// Equal keys, equal code.
std::string code_key(const KernelSource& source, const Arch& arch, const std::string& toolchain);

// From a pack or the cache if it is there, else compiled and stored.
Result<CodeObject> compile_cached(Backend& backend, const KernelSource& source, const Arch& arch, const CodeCache& cache, const PackedCode& packs = {});

}  // namespace tilewright
