// What the file system under a database is and allows.
#pragma once
#include <string>

#include "tilewright/status.h"

namespace tilewright {

// True on NFS, SMB, 9P, FUSE, Lustre and their like, where shared memory between hosts does not exist and WAL must not be used.
// `path` need not exist; its nearest existing folder counts.
bool is_on_network(const std::string& path);
bool is_network_file_system(long type);  // statfs's f_type

// Makes the folder of a file and those above it. unavailable with the reason if it cannot.
Status make_parent_folder(const std::string& path);

// What a file is before SQLite sees it: not_found, unavailable (no permission), invalid_argument (a folder, or not
// SQLite's format; the message says so). An empty file is ok: SQLite takes it for a new database.
Status check_database_file(const std::string& path);

// True if this process may write the file or, where there is none, its folder.
bool can_write(const std::string& path);

}  // namespace tilewright
