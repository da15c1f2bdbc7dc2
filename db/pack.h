// Compiled kernels in a database file, made by `tilewright pack` for machines without a compiler.
#pragma once
#include <string>
#include <vector>

#include "db/store.h"

namespace tilewright {

struct PackedKernel {
    std::string key, arch, bytes;
};
// Makes the file a pack of these kernels, in one transaction; invalid_argument if it is one already.
Status write_pack(Store& store, const std::string& library, const std::vector<PackedKernel>& kernels);

struct PackFacts {
    std::string library;
    std::vector<std::string> archs;
    int64_t kernels = 0;
};
// not_found: not a pack. io: keys and hashes are not those that were stored.
Result<PackFacts> read_pack(Store& store);

// not_found, or io if the bytes are not those that were stored.
Result<std::string> packed_kernel(Store& store, const std::string& key, const std::string& arch);

}  // namespace tilewright
