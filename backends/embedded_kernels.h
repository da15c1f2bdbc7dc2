// The text of every device header, generated at build time from kernels/.
#pragma once

namespace tilewright {

struct EmbeddedFile {
    const char* path;  // below kernels/, e.g. "tile/tile.h"; null ends the table
    const char* text;
};
extern const EmbeddedFile embedded_kernels[];

}  // namespace tilewright
