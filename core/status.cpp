// Names of status codes.
#include "tilewright/status.h"

namespace tilewright {

const char* name(StatusCode code) {
    switch (code) {
    case StatusCode::ok: return "ok";
    case StatusCode::invalid_argument: return "invalid argument";
    case StatusCode::not_found: return "not found";
    case StatusCode::unsupported: return "unsupported";
    case StatusCode::unavailable: return "unavailable";
    case StatusCode::io: return "io";
    case StatusCode::compile: return "compile";
    case StatusCode::runtime: return "runtime";
    case StatusCode::timeout: return "timeout";
    case StatusCode::internal: return "internal";
    }
    return "unknown";
}

}  // namespace tilewright
