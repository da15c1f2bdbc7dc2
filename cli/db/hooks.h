// What today's kernels and limits say about rows of a database.
#pragma once
#include "db/tools/check.h"

namespace tilewright::cli {

// Architectures that this build does not know are not judged.
CheckHooks check_hooks();

}  // namespace tilewright::cli
