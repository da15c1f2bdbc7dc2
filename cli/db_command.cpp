// tilewright db: what can be done with tuning databases.
#include "cli/db/commands.h"

namespace tilewright::cli {

int db_command(const Arguments& arguments) { return dispatch("tilewright db", db_commands(), arguments); }

}  // namespace tilewright::cli
