// The launches of an operation as files: code objects, arguments, buffers and expected results, for any emulator, debugger or driver to replay
// without Tilewright. docs/bundle.md describes the files.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/status.h"

namespace tilewright {

// A member of the kernel's argument block.
struct BundleField {
    std::string name;                         // as in ForwardParameters: "query", "query_strides.batch", "scale"; maps: "query_map"
    int64_t offset = 0;                       // bytes from the start of the block
    int64_t size = 0;                         // bytes
    std::string kind;                         // "pointer", "int32", "int64", "float32", "tensor_map"
    std::string buffer;                       // pointer, tensor_map: where it points; empty: null
    int64_t buffer_offset = 0;                // bytes into the buffer
    std::vector<int64_t> dims, strides, box;  // tensor_map: elements, bytes (of dims[1] onwards), elements
};

struct BundleBuffer {
    std::string name;
    std::string contents;  // before the first launch; outputs hold NaN, guards included
    bool written = false;  // by a kernel
};

// What rows of a result must be. Element (batch, head, row, column) lies at `offset` bytes plus the strides' sum in elements,
// plus `column` elements.
struct BundleExpected {
    std::string name;  // "out", "lse"
    std::string buffer;
    std::string element;  // "fp32", "fp16", "bf16"
    int64_t offset = 0;
    std::array<int64_t, 3> strides{};  // batch, head, row, in elements
    int64_t columns = 1;
    std::vector<std::array<int64_t, 3>> rows;  // batch, head, row
    std::vector<double> values;                // [rows][columns]
    double tolerance = 0;                      // absolute, of finite values; NaN and infinities must be the same
};

struct BundleLaunch {
    std::string config;                      // text, for people
    std::string kernel;                      // symbol
    std::string code;                        // the object file
    std::array<int64_t, 3> grid{}, block{};  // blocks; threads of a block
    int64_t dynamic_shared_bytes = 0;
    int64_t static_shared_bytes = -1;  // as the code object says; -1: it does not
    std::string arguments;             // the argument block, with zeros for pointers and tensor maps
    int64_t argument_alignment = 8;
    std::vector<BundleField> fields;  // every member, in order of offsets
};

struct Bundle {
    std::string backend, arch;
    std::string problem, toolchain;      // text, for people
    std::vector<BundleLaunch> launches;  // at least one; each begins when the one before has ended, and nothing happens in between
    std::vector<BundleBuffer> buffers;   // of all launches
    std::vector<BundleExpected> expected;  // after the last
};

// invalid_argument, naming the part: no launch, a field outside the block or over another one, a buffer that is not there or too small for what
// points into it, values that are not rows times columns. Pure.
Status validate(const Bundle& bundle);

// The directory is made if need be; files of a bundle that is already there are overwritten, launch.json last.
// invalid_argument as validate(); io: a file could not be written.
Status write_bundle(const std::string& directory, const Bundle& bundle);

// The same bundle again. io: a file is missing or unreadable; invalid_argument: launch.json is malformed or of an unknown
// version, a file's size is not what it says, or validate() refuses.
Result<Bundle> read_bundle(const std::string& directory);

}  // namespace tilewright
