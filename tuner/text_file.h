// Text files, plain or compressed.
#pragma once
#include <string>

#include "tilewright/status.h"

namespace tilewright {

// The text of a file; gzip is recognised by its content. io: it cannot be read, or is damaged.
Result<std::string> read_text(const std::string& path);

}  // namespace tilewright
