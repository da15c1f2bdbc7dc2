// SQLite's default file system with faults at will: the n-th write, sync or read fails, once or from then on.
#pragma once
#include <sqlite3.h>

namespace tilewright::testing {

struct Faults {
    enum Kind { write, sync, read };
    Kind kind = write;
    int after = -1;              // so many calls of that kind succeed first; negative: no faults
    int code = SQLITE_IOERR;     // what the failing call returns
    bool forever = false;        // all later calls fail too
    int happened = 0;            // faults so far
};

// Installed as the default VFS from construction to destruction. One at a time, one thread.
class FaultyVfs {
public:
    FaultyVfs();
    ~FaultyVfs();
    FaultyVfs(const FaultyVfs&) = delete;
    FaultyVfs& operator=(const FaultyVfs&) = delete;
    Faults faults;

private:
    sqlite3_vfs vfs_{};
    sqlite3_vfs* real_;
};

}  // namespace tilewright::testing
