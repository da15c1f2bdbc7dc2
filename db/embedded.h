// Text files built into the library.
#pragma once

namespace tilewright {

struct EmbeddedText {
    const char* name;  // file name
    const char* text;
};
extern const EmbeddedText embedded_migrations[];  // in order of version; ends with {nullptr, nullptr}

}  // namespace tilewright
