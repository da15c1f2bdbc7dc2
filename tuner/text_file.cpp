// Reading text, plain or gzip, by zlib.
#include "tuner/text_file.h"

#include <zlib.h>

#include <filesystem>
#include <memory>

namespace tilewright {

Result<std::string> read_text(const std::string& path) {
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
    if (file == nullptr || std::filesystem::is_directory(path)) return Status(StatusCode::io, "cannot read '" + path + "'");
    std::string text, block(1 << 20, '\0');
    int count;
    while ((count = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()))) > 0) text.append(block, 0, static_cast<size_t>(count));
    if (count < 0) return Status(StatusCode::io, "'" + path + "' is damaged: " + gzerror(file.get(), &count));
    return text;
}

}  // namespace tilewright
