// The calling thread's last failure, which tilewright_bench_error() tells.
#pragma once
#include <string>

#include "tilewright/status.h"

namespace tilewright::bench {

inline std::string& last_error() {
    thread_local std::string text;
    return text;
}
inline std::nullptr_t fail(const Status& status) {
    last_error() = status.message();
    return nullptr;
}

}  // namespace tilewright::bench
