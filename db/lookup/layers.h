// The files that lookups draw on, in order of precedence, and whether they changed since they were read.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/lookup/index.h"
#include "tilewright/tuning.h"

namespace tilewright::lookup {

// What tells one state of a file from another without opening it; of the write-ahead log too, where commits go first.
struct FileStamp {
    uint64_t device = 0, inode = 0, size = 0, log_size = 0;
    int64_t changed_ns = 0, log_changed_ns = 0;
    bool operator==(const FileStamp&) const = default;
};
FileStamp stamp_of(const std::string& path);

struct Layer {
    DatabaseLayer facts;
    FileStamp stamp;
    bool builtin = false;  // the shipped defaults: no file
    bool settled = true;   // false: must be read again even if the stamp is the same
};

// The layers that the options ask for, not read yet, first the one that is asked first.
std::vector<Layer> find_layers(const DatabaseOptions& options);

// Reads every layer; sets its facts and stamp. What cannot be read is left out of the index and says why.
std::shared_ptr<const Index> read_layers(std::vector<Layer>& layers);

}  // namespace tilewright::lookup
