// Names of element types.
#include "tilewright/dtype.h"

#include <string>

namespace tilewright {

const char* name(DType dtype) {
    switch (dtype) {
    case DType::fp32: return "fp32";
    case DType::fp16: return "fp16";
    case DType::bf16: return "bf16";
    }
    return "unknown";
}

Result<DType> parse_dtype(std::string_view text) {
    for (DType dtype : {DType::fp32, DType::fp16, DType::bf16})
        if (text == name(dtype)) return dtype;
    return invalid_argument("unknown dtype '" + std::string(text) + "'; known are fp32, fp16, bf16");
}

}  // namespace tilewright
