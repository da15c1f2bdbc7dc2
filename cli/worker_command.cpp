// tilewright worker: started by the tuner, speaks its protocol on standard input and output. Not for people.
#include "cli/cli.h"
#include "tuner/device_tasks.h"

namespace tilewright::cli {

int worker_command(const Arguments&) { return run_device_worker(); }

}  // namespace tilewright::cli
