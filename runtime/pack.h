// Makes a pack: winners and compiled kernels in one file, for machines without a compiler.
#pragma once
#include <string>
#include <vector>

#include "db/store.h"

namespace tilewright {

struct PackReport {
    int64_t rows = 0;                  // winners
    int64_t kernels = 0;
    std::vector<std::string> skipped;  // a sentence each: which problem on which arch has no kernel here, and why
};

// Writes the new file `out`: the winners of `from` (null: none) measured on these archs, and for every problem, those that were won and
// those given, the kernels that calls with dense tensors take there. invalid_argument: `out` exists, no such arch,
// or an arch whose code is made for the machine that compiles it (cpu). On any error there is no `out`.
Result<PackReport> make_pack(const std::vector<std::string>& archs, const std::vector<Problem>& problems, Store* from, const std::string& out);

}  // namespace tilewright
