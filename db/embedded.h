// Text files built into the library.
#pragma once

namespace tilewright {

struct EmbeddedText {
    const char* name;  // file name
    const char* text;
};
// Both end with {nullptr, nullptr}.
extern const EmbeddedText embedded_migrations[];  // in order of version
extern const EmbeddedText embedded_defaults[];    // JSON lines

}  // namespace tilewright
