// Who may do what where: permissions, and the places that the environment names.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "db/fixtures.h"

namespace tilewright {
namespace {

using namespace testing;  // NOLINT: the fixtures are tilewright::testing
using ::testing::HasSubstr;

// What a process without rights sees. Root may do anything, so the question is put from a child with another user id.
class UnprivilegedTest : public StoreTest {
protected:
    void add_one() {
        Store store = open();
        add(store, timed(100));
    }

    // Runs `body` as nobody; its text comes back.
    template <class Body>
    std::string as_nobody(const Body& body) {
        int ends[2];
        EXPECT_EQ(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            const bool dropped = geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
            const std::string text = dropped ? body() : "cannot drop rights";
            const ssize_t written = write(ends[1], text.data(), text.size());
            _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
        }
        close(ends[1]);
        std::string text(4096, '\0');
        const ssize_t got = read(ends[0], text.data(), text.size());
        close(ends[0]);
        text.resize(got > 0 ? static_cast<size_t>(got) : 0);
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return text;
    }

    void set_rights(mode_t folder, mode_t file) {
        EXPECT_EQ(chmod(path().c_str(), file), 0);
        EXPECT_EQ(chmod(std::filesystem::path(path()).parent_path().c_str(), folder), 0);
    }
    void TearDown() override { set_rights(0755, 0644); }
};

TEST_F(UnprivilegedTest, a_read_only_file_in_a_read_only_folder_is_read_and_not_written) {
    add_one();  // in WAL mode: its shared memory cannot be made there
    set_rights(0555, 0444);
    EXPECT_EQ(as_nobody([&] {
        Result<Store> store = Store::open(path(), StoreMode::read);
        if (!store.ok()) return store.status().message();
        return std::to_string(store->info()->measurements) + " " + store->note();
    }), "1 read-only media: read as a file that does not change");
    EXPECT_THAT(as_nobody([&] { return open_status(path(), StoreMode::write).message(); }), HasSubstr("cannot be written"));
}

TEST_F(UnprivilegedTest, a_file_without_read_permission_is_named) {
    add_one();
    set_rights(0755, 0000);
    EXPECT_THAT(as_nobody([&] { return open_status(path(), StoreMode::read).message(); }), HasSubstr("Permission denied"));
    EXPECT_THAT(as_nobody([&] {
        DatabaseOptions options;
        options.user_path = path();
        options.use_system = options.use_defaults = false;
        TuningDatabase database = TuningDatabase::open(options);
        (void)database.lookup(causal_1024(), database.device(device()));
        return database.layers()[0].status.message() + " | " + database.flush_misses().message();
    }), HasSubstr("Permission denied"));
}

TEST_F(UnprivilegedTest, a_folder_that_cannot_be_made_is_named) {
    add_one();
    set_rights(0555, 0444);
    EXPECT_THAT(as_nobody([&] { return open_status(path("deep/er/t.db"), StoreMode::create).message(); }), HasSubstr("cannot be made: Permission denied"));
}

class EnvironmentTest : public StoreTest {
protected:
    void SetUp() override {
        StoreTest::SetUp();
        for (const char* name : {"TILEWRIGHT_DB", "XDG_DATA_HOME", "HOME", "TILEWRIGHT_SYSTEM_DB", "XDG_DATA_DIRS"}) {
            const char* value = std::getenv(name);
            saved_.emplace_back(name, value ? std::optional<std::string>(value) : std::nullopt);
            unsetenv(name);
        }
    }
    void TearDown() override {
        for (const auto& [name, value] : saved_) value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    }
    static void set(const char* name, const std::string& value) { ASSERT_EQ(setenv(name, value.c_str(), 1), 0); }

private:
    std::vector<std::pair<std::string, std::optional<std::string>>> saved_;
};

TEST_F(EnvironmentTest, the_user_database_is_where_the_environment_says) {
    EXPECT_EQ(user_database_path(), "");
    set("HOME", "/people/ada");
    EXPECT_EQ(user_database_path(), "/people/ada/.local/share/tilewright/tuning.db");
    set("XDG_DATA_HOME", "relative/is/ignored");
    EXPECT_EQ(user_database_path(), "/people/ada/.local/share/tilewright/tuning.db");
    set("XDG_DATA_HOME", "/data/ada");
    EXPECT_EQ(user_database_path(), "/data/ada/tilewright/tuning.db");
    set("TILEWRIGHT_DB", "mine.db");
    EXPECT_EQ(user_database_path(), "mine.db");
}

TEST_F(EnvironmentTest, without_a_home_lookups_answer_and_misses_have_no_place) {
    set("XDG_DATA_DIRS", path("nowhere"));
    DatabaseOptions options;
    options.use_defaults = false;
    TuningDatabase database = TuningDatabase::open(options);
    EXPECT_EQ(database.lookup(causal_1024(), database.device(device())).provenance, Provenance::heuristic);
    EXPECT_TRUE(database.layers().empty());
    EXPECT_THAT(database.flush_misses().message(), HasSubstr("there is no user database"));
}

TEST_F(EnvironmentTest, system_databases_are_found_below_the_data_folders_by_name) {
    for (const char* file : {"share1/tilewright/b.db", "share1/tilewright/a.db", "share2/tilewright/c.db"}) (void)open(StoreMode::create, file);
    ASSERT_TRUE(write_file(path("share1/tilewright/readme.txt"), "not a database").ok());
    set("XDG_DATA_DIRS", path("share1") + ":" + path("absent") + ":" + path("share2"));
    const auto paths = [] {
        std::vector<std::string> found;
        for (const DatabaseLayer& layer : TuningDatabase::open().layers()) found.push_back(layer.path);
        return found;
    };
    EXPECT_EQ(paths(), (std::vector<std::string>{path("share1/tilewright/a.db"), path("share1/tilewright/b.db"), path("share2/tilewright/c.db"), "built-in defaults"}));
    set("TILEWRIGHT_SYSTEM_DB", path("x.db") + ":" + path("share1/tilewright/b.db"));
    EXPECT_EQ(paths(), (std::vector<std::string>{path("x.db"), path("share1/tilewright/b.db"), "built-in defaults"}));
}

}  // namespace
}  // namespace tilewright
