// The tunables of a kernel. A new tunable is one member here and one row in config.cpp's field list.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "tilewright/status.h"

namespace tilewright {

struct Config {
    int block_q = 64;    // query rows of a tile
    int block_kv = 64;   // keys of a tile
    int stages = 1;      // KV tiles in flight
    int workers = 1;     // warps that share a tile (warpgroups on sm_90a)
    int blocks = 1;      // blocks per multiprocessor to leave registers for (waves per SIMD on AMD)
    int slack = 8;       // powers of two by which a row maximum may lag before the output is rescaled; 0: never lags
    int overlapped = 0;  // 1: the next tile's scores are computed beside this tile's output
    int turns = 0;       // 1: workers issue their matrix products in turn
    int packs_heads = 0; // 1: the query heads of a KV head share a tile
    int section_kb = 0;  // work order: heads walk together while their K and V fit in so much cache; 0: all heads (of a die, where a device has several)
    int dot16 = 0;       // CPU: 1: the processor's 16-bit dot products, which are faster than float on some and slower on others
    // 1: as many blocks as fit the device, tiles dealt at run time; 0: one block a tile. Backward, sm_90a, whose tiles always are dealt so: 1: the pass over keys
    // that sums dQ does the work of the prologue and the epilogue too; 0: these are kernels of their own.
    int persistent = 0;
    int units = 0;       // decode: pieces of work for each multiprocessor (thread) that keys are cut into; 0: as the device likes
    int early_kb = 0;    // decode, sm_90a: a block asks for so much of its keys and values while the kernel before is still running; 0: it waits
    // Backward: 0: dQ has a pass of its own; 1: the pass over keys adds to it in memory, in any order; 2: in a fixed order, so that results
    // are bitwise repeatable, as they are with 0.
    int dq = 0;

    bool operator==(const Config&) const = default;
};

struct ConfigField {
    const char* name;
    int Config::* member;
    const char* help;
};
// All fields, in the order of the canonical JSON.
std::span<const ConfigField> config_fields();

// Canonical JSON, one line, every field by name in a fixed order: {"block_q":64,"block_kv":64,...}. Equal text, equal config.
std::string to_json(const Config& config);
// Missing fields take their defaults; an unknown field or a value that is no integer is invalid_argument and named.
Result<Config> parse_config(std::string_view json);

}  // namespace tilewright
