// Where NVRTC may be: the files to try, in order.
#pragma once
#include <string>
#include <vector>

namespace tilewright::nvidia {

// Full paths that exist and, for the loader's own search, bare names. Looks at the environment and the file system.
std::vector<std::string> nvrtc_candidates();

}  // namespace tilewright::nvidia
