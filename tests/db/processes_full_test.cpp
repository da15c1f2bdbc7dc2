// Many processes on one file, and processes that die at any moment.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "db/fixtures.h"
#include "db/tools/check.h"

namespace tilewright::testing {
namespace {

class ProcessesTest : public StoreTest {
protected:
    // Runs `body` in a child and exits with what it returns.
    template <class Body>
    static pid_t start(const Body& body) {
        const pid_t child = fork();
        if (child == 0) _exit(body());
        EXPECT_GT(child, 0);
        return child;
    }

    static int wait_for(pid_t child) {
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return status;
    }

    void expect_sound() {
        Store store = open(StoreMode::read);
        Result<std::vector<Finding>> findings = check_database(store, 2000000000);
        ASSERT_TRUE(findings.ok()) << findings.status().message();
        for (const Finding& finding : *findings) EXPECT_NE(finding.kind, FindingKind::damage) << finding.text;
    }
};

TEST_F(ProcessesTest, sixteen_writers_and_two_readers_lose_no_row) {
    constexpr int writers = 16, rows = 200;
    std::vector<pid_t> children;
    for (int writer = 0; writer < writers; ++writer) {
        children.push_back(start([&] {
            // All make the file at once, too.
            Result<Store> store = Store::open(path(), StoreMode::create);
            if (!store.ok()) return std::fprintf(stderr, "%s\n", store.status().message().c_str()), 1;
            for (int i = 0; i < rows; ++i) {
                const Problem of = problem("forward:sq" + std::to_string(1 + i % 10));
                Result<MeasurementKey> key = store->put_key(of, device(), toolchain());
                if (!key.ok()) return std::fprintf(stderr, "%s\n", key.status().message().c_str()), 2;
                Measurement measurement = timed(100 + i, 16 + i % 7);
                measurement.note = std::to_string(writer) + "/" + std::to_string(i);
                const Status status = store->add(*key, measurement).status();
                if (!status.ok()) return std::fprintf(stderr, "%s\n", status.message().c_str()), 3;
            }
            return 0;
        }));
    }
    // Readers see a file that only grows.
    for (int reader = 0; reader < 2; ++reader) {
        children.push_back(start([&] {
            int64_t last = 0;
            for (int i = 0; i < 200; ++i) {
                Result<Store> store = Store::open(path(), StoreMode::read);
                usleep(20000);
                if (!store.ok()) {
                    // Before the first writer has made the tables.
                    if (last == 0 && store.status().code() != StatusCode::io) continue;
                    return std::fprintf(stderr, "%s\n", store.status().message().c_str()), 1;
                }
                Result<StoreInfo> info = store->info();
                if (!info.ok()) return std::fprintf(stderr, "%s\n", info.status().message().c_str()), 2;
                if (info->measurements < last) return 3;
                last = info->measurements;
            }
            return last > 0 ? 0 : 4;
        }));
    }
    for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
    expect_sound();
    std::map<std::string, int> seen;
    Store store = open(StoreMode::read);
    ASSERT_TRUE(store.for_each([&](const MeasurementRow& row) { return ++seen[row.measurement.note], Status(); }).ok());
    EXPECT_EQ(seen.size(), static_cast<size_t>(writers) * rows);
    for (const auto& [note, count] : seen) EXPECT_EQ(count, 1) << note;
    EXPECT_EQ(store.info()->problems, 10);
    EXPECT_EQ(store.info()->configs, 7);
    EXPECT_EQ(std::pair(store.info()->devices, store.info()->toolchains), std::pair(int64_t{1}, int64_t{1}));
}

TEST_F(ProcessesTest, a_writer_killed_at_any_moment_loses_nothing_that_it_reported) {
    constexpr int runs = 200;
    uint32_t random = 2024;
    int64_t total = 0;
    for (int run = 0; run < runs; ++run) {
        // Every fourth run starts with a new file: the migration is killed too.
        if (run % 4 == 0) {
            for (const char* suffix : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(path() + suffix);
            total = 0;
        }
        int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        const pid_t child = start([&] {
            Result<Store> store = Store::open(path(), StoreMode::create);
            if (!store.ok()) return 1;
            for (int i = 0;; ++i) {
                Result<MeasurementKey> key = store->put_key(problem("forward:sq" + std::to_string(1 + i)), device(), toolchain());
                if (!key.ok() || !store->add(*key, timed(100, 16 + run)).ok()) return 2;
                if (write(ends[1], "x", 1) != 1) return 3;
            }
        });
        close(ends[1]);
        random = random * 1664525 + 1013904223;
        usleep((random >> 8) % 60000);
        ASSERT_EQ(kill(child, SIGKILL), 0);
        EXPECT_TRUE(WIFSIGNALED(wait_for(child))) << "run " << run << ": the writer failed by itself";
        int64_t reported = 0;
        char buffer[256];
        for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) reported += got;
        close(ends[0]);
        // Opening for writing recovers or makes the file, whatever is there.
        const int64_t found = open().info()->measurements;
        EXPECT_GE(found, total + reported) << "run " << run;
        EXPECT_LE(found, total + reported + 1) << "run " << run;
        total = found;
        expect_sound();
    }
}

}  // namespace
}  // namespace tilewright::testing
