// A disk that fails at each of its writes, syncs and reads in turn: nothing acknowledged is lost, nothing is half there.
#include "db/faulty_vfs.h"

#include <filesystem>
#include <new>

#include "db/fixtures.h"
#include "db/tools/check.h"

namespace tilewright::testing {
namespace {

FaultyVfs* installed = nullptr;

struct FaultyFile {
    sqlite3_file base;  // first: SQLite sees only this
    sqlite3_file* real;
};

sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<FaultyFile*>(file)->real; }

// SQLITE_OK, or the code to fail with.
int fault(Faults::Kind kind) {
    Faults& faults = installed->faults;
    if (faults.kind != kind || faults.after < 0) return SQLITE_OK;
    if (faults.after > 0) return --faults.after, SQLITE_OK;
    if (!faults.forever) faults.after = -1;
    ++faults.happened;
    return faults.code;
}

const sqlite3_io_methods methods = {
    3,
    [](sqlite3_file* file) {
        const int code = real(file)->pMethods ? real(file)->pMethods->xClose(real(file)) : SQLITE_OK;
        ::operator delete(real(file));
        return code;
    },
    [](sqlite3_file* file, void* to, int bytes, sqlite3_int64 at) {
        const int code = fault(Faults::read);
        return code != SQLITE_OK ? code : real(file)->pMethods->xRead(real(file), to, bytes, at);
    },
    [](sqlite3_file* file, const void* from, int bytes, sqlite3_int64 at) {
        const int code = fault(Faults::write);
        return code != SQLITE_OK ? code : real(file)->pMethods->xWrite(real(file), from, bytes, at);
    },
    [](sqlite3_file* file, sqlite3_int64 size) { return real(file)->pMethods->xTruncate(real(file), size); },
    [](sqlite3_file* file, int flags) {
        const int code = fault(Faults::sync);
        return code != SQLITE_OK ? code : real(file)->pMethods->xSync(real(file), flags);
    },
    [](sqlite3_file* file, sqlite3_int64* size) { return real(file)->pMethods->xFileSize(real(file), size); },
    [](sqlite3_file* file, int lock) { return real(file)->pMethods->xLock(real(file), lock); },
    [](sqlite3_file* file, int lock) { return real(file)->pMethods->xUnlock(real(file), lock); },
    [](sqlite3_file* file, int* reserved) { return real(file)->pMethods->xCheckReservedLock(real(file), reserved); },
    [](sqlite3_file* file, int op, void* argument) { return real(file)->pMethods->xFileControl(real(file), op, argument); },
    [](sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); },
    [](sqlite3_file* file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); },
    [](sqlite3_file* file, int page, int size, int extend, void volatile** memory) { return real(file)->pMethods->xShmMap(real(file), page, size, extend, memory); },
    [](sqlite3_file* file, int offset, int count, int flags) { return real(file)->pMethods->xShmLock(real(file), offset, count, flags); },
    [](sqlite3_file* file) { real(file)->pMethods->xShmBarrier(real(file)); },
    [](sqlite3_file* file, int remove) { return real(file)->pMethods->xShmUnmap(real(file), remove); },
    [](sqlite3_file* file, sqlite3_int64 at, int bytes, void** memory) { return real(file)->pMethods->xFetch(real(file), at, bytes, memory); },
    [](sqlite3_file* file, sqlite3_int64 at, void* memory) { return real(file)->pMethods->xUnfetch(real(file), at, memory); },
};

int open_faulty(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    auto* const below = static_cast<sqlite3_vfs*>(vfs->pAppData);
    auto* const made = static_cast<sqlite3_file*>(::operator new(static_cast<size_t>(below->szOsFile)));
    made->pMethods = nullptr;
    const int code = below->xOpen(below, name, made, flags, out_flags);
    reinterpret_cast<FaultyFile*>(file)->real = made;
    // Without methods SQLite does not call xClose.
    file->pMethods = code == SQLITE_OK ? &methods : nullptr;
    if (code != SQLITE_OK) ::operator delete(made);
    return code;
}

}  // namespace

FaultyVfs::FaultyVfs() : real_(sqlite3_vfs_find(nullptr)) {
    vfs_ = *real_;
    vfs_.pNext = nullptr;
    vfs_.zName = "faulty";
    vfs_.szOsFile = sizeof(FaultyFile);
    vfs_.pAppData = real_;
    vfs_.xOpen = open_faulty;
    installed = this;
    EXPECT_EQ(sqlite3_vfs_register(&vfs_, 1), SQLITE_OK);
}

FaultyVfs::~FaultyVfs() {
    EXPECT_EQ(sqlite3_vfs_unregister(&vfs_), SQLITE_OK);
    EXPECT_EQ(sqlite3_vfs_register(real_, 1), SQLITE_OK);
    installed = nullptr;
}

namespace {

class FaultTest : public StoreTest {
protected:
    // Opens, adds three rows one by one and three together; returns how many were acknowledged.
    static int work(const std::string& file, std::vector<std::string>& sentences) {
        int acknowledged = 0;
        Result<Store> store = Store::open(file, StoreMode::create);
        if (!store.ok()) {
            sentences.push_back(store.status().message());
            return 0;
        }
        for (int i = 0; i < 3; ++i) {
            Result<MeasurementKey> key = store->put_key(causal_1024(), device(), toolchain());
            const Status status = key.ok() ? store->add(*key, timed(100 + i, 16 + i)).status() : key.status();
            if (status.ok()) ++acknowledged; else sentences.push_back(status.message());
        }
        const MeasurementRow row{problem("forward:sq77"), device("other"), toolchain(), timed(5), true};
        const Status status = store->add_all({row, row, row});
        if (status.ok()) acknowledged += 3; else sentences.push_back(status.message());
        return acknowledged;
    }

    // Fails the n-th operation of a kind for every n that the work reaches.
    void fail_each(Faults::Kind kind, int code, bool forever, const std::string& why) {
        FaultyVfs vfs;
        int reached = 0, at = 0;
        for (bool more = true; more; ++at) {
            const std::string file = path("fault.db");
            for (const char* suffix : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(file + suffix);
            std::vector<std::string> sentences;
            vfs.faults = {kind, at, code, forever, 0};
            const int acknowledged = work(file, sentences);
            more = vfs.faults.happened > 0;
            reached += more;
            vfs.faults = {};
            if (more && !sentences.empty()) {
                EXPECT_NE(sentences.front().find(why), std::string::npos) << sentences.front();
            }
            // After the fault the same work succeeds, and what was acknowledged before is still there.
            std::vector<std::string> none;
            EXPECT_EQ(work(file, none), 6) << "after fault " << at << ": " << (none.empty() ? "" : none.front());
            Store store = open(StoreMode::read, "fault.db");
            const int64_t found = store.info()->measurements;
            // A row whose commit reached the log but not the acknowledgement may be there: one transaction, whole.
            EXPECT_GE(found, acknowledged + 6) << "fault " << at;
            EXPECT_LE(found, acknowledged + 6 + 3) << "fault " << at;
            Result<std::vector<Finding>> findings = check_database(store, 2000);
            ASSERT_TRUE(findings.ok()) << findings.status().message();
            EXPECT_TRUE(findings->empty()) << findings->front().text;
        }
        RecordProperty("faults", reached);
        EXPECT_GT(reached, 5);
    }
};

TEST_F(FaultTest, a_full_disk_loses_nothing_acknowledged) { fail_each(Faults::write, SQLITE_FULL, true, "disk is full"); }
TEST_F(FaultTest, a_failing_write_loses_nothing_acknowledged) { fail_each(Faults::write, SQLITE_IOERR_WRITE, false, "could not be"); }
TEST_F(FaultTest, a_failing_sync_loses_nothing_acknowledged) { fail_each(Faults::sync, SQLITE_IOERR_FSYNC, false, "could not be"); }
TEST_F(FaultTest, a_failing_read_loses_nothing_acknowledged) { fail_each(Faults::read, SQLITE_IOERR_READ, false, "could not be"); }

TEST_F(FaultTest, lookups_go_on_when_a_file_cannot_be_read) {
    {
        Store store = open();
        add(store, timed(100));
    }
    FaultyVfs vfs;
    for (int at = 0; at < 12; ++at) {
        vfs.faults = {Faults::read, at, SQLITE_IOERR_READ, true, 0};
        DatabaseOptions options;
        options.user_path = path();
        options.use_system = options.use_defaults = options.log_misses = false;
        TuningDatabase database = TuningDatabase::open(options);
        const LookupResult result = database.lookup(causal_1024(), database.device(device()));
        EXPECT_EQ(result.provenance == Provenance::exact, database.layers()[0].status.ok());
        vfs.faults = {};
    }
}

}  // namespace
}  // namespace tilewright::testing
