// The commands below `tilewright db`.
#pragma once
#include <ctime>
#include <span>
#include <string>
#include <vector>

#include "cli/cli.h"

namespace tilewright::cli {

std::span<const Command> db_commands();

int db_info(const Arguments& arguments);
int db_check(const Arguments& arguments);
int db_verify(const Arguments& arguments);
int db_merge(const Arguments& arguments);
int db_prune(const Arguments& arguments);
int db_diff(const Arguments& arguments);
int db_export(const Arguments& arguments);
int db_import(const Arguments& arguments);

// The one file that a command was given, or the user database. invalid_argument if there are several or none.
Result<std::string> database_argument(const std::vector<std::string>& files);

// "2026-01-31T12:00:00Z"; "never" for 0.
std::string utc(int64_t seconds);

}  // namespace tilewright::cli
