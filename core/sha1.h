// A hash that tells whether bytes are those that were stored; no protection against somebody who wants to deceive.
#pragma once
#include <string>
#include <string_view>

namespace tilewright {

std::string sha1(std::string_view bytes);  // 40 hex digits

}  // namespace tilewright
