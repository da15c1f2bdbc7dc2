// What writer and reader of bundles agree on.
#pragma once
#include <cstdint>
#include <string>

namespace tilewright::bundle_format {

constexpr const char* name = "tilewright-launch";
// Frozen: a change of meaning is a new number. One launch is described beside the rest; several are a list.
constexpr int version_of_one = 1, version_of_several = 2;

inline int64_t element_bytes(const std::string& element) { return element == "fp32" ? 4 : element == "fp16" || element == "bf16" ? 2 : 0; }

// Names become files of the bundle's directory, and nothing outside it.
inline bool is_file_name(const std::string& text) {
    return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == text.npos && text[0] != '.';
}

}  // namespace tilewright::bundle_format
