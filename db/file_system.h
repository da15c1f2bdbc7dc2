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

// Whether there is a file that SQLite could open: not_found, unavailable (no permission), invalid_argument (a folder or device).
// Does not open it: closing a file drops all of this process's locks on it, also those of SQLite's connections.
Status check_database_file(const std::string& path);

// True if this process may write the file or, where there is none, its folder.
bool can_write(const std::string& path);

}  // namespace tilewright
