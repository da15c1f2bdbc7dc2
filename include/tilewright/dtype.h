// Element types. The numbers are stored in databases: frozen.
#pragma once
#include <cstddef>
#include <string_view>

#include "tilewright/status.h"

namespace tilewright {

enum class DType : int { fp32 = 1, fp16 = 2, bf16 = 3 };

const char* name(DType dtype);
constexpr size_t size_of(DType dtype) { return dtype == DType::fp32 ? 4 : 2; }
// "fp32", "fp16", "bf16"; anything else is invalid_argument and the message lists these.
Result<DType> parse_dtype(std::string_view text);

}  // namespace tilewright
