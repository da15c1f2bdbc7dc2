// The cache of compiled kernels gives back what was stored, and nothing that somebody else could have put there.
#include "runtime/code_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/scratch_directory.h"

namespace tilewright {
namespace {

class CodeCacheFiles : public testing::Test {
protected:
    ScratchDirectory scratch = *ScratchDirectory::create();
    std::string directory = scratch.file("cache");
    CodeCache cache{directory};
    CodeObject object{"cpu", std::string("machine\0code", 12), "log"};
    std::string path() const { return directory + "/key.code"; }
};

TEST_F(CodeCacheFiles, GivesBackWhatWasStored) {
    EXPECT_FALSE(cache.load("key", "cpu"));
    cache.store("key", object);
    std::optional<CodeObject> found = cache.load("key", "cpu");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->bytes, object.bytes);
    EXPECT_EQ(found->arch, "cpu");
}

TEST_F(CodeCacheFiles, IsReadableByItsUserAlone) {
    cache.store("key", object);
    struct stat file {
    }, folder{};
    ASSERT_EQ(stat(path().c_str(), &file), 0);
    ASSERT_EQ(stat(directory.c_str(), &folder), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600u);
    EXPECT_EQ(folder.st_mode & 0777, 0700u);
}

TEST_F(CodeCacheFiles, IgnoresDamagedContents) {
    cache.store("key", object);
    std::fstream(path(), std::ios::in | std::ios::out | std::ios::binary).seekp(45).put('X');
    EXPECT_FALSE(cache.load("key", "cpu"));
    std::ofstream(path(), std::ios::trunc) << "short";
    EXPECT_FALSE(cache.load("key", "cpu"));
}

TEST_F(CodeCacheFiles, IgnoresFilesThatOthersMayWriteAndLinks) {
    cache.store("key", object);
    ASSERT_EQ(chmod(path().c_str(), 0622), 0);
    EXPECT_FALSE(cache.load("key", "cpu"));
    ASSERT_EQ(chmod(path().c_str(), 0600), 0);
    EXPECT_TRUE(cache.load("key", "cpu"));
    std::filesystem::create_symlink(path(), directory + "/link.code");
    EXPECT_FALSE(cache.load("link", "cpu"));
}

TEST_F(CodeCacheFiles, SurvivesWritersOfTheSameKey) {
    std::vector<std::thread> writers;
    for (int i = 0; i < 8; ++i)
        writers.emplace_back([this] {
            for (int n = 0; n < 50; ++n) {
                cache.store("key", object);
                std::optional<CodeObject> found = cache.load("key", "cpu");
                EXPECT_TRUE(found && found->bytes == object.bytes);
            }
        });
    for (std::thread& writer : writers) writer.join();
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
}

TEST_F(CodeCacheFiles, IsNoErrorWhereItCannotWrite) {
    CodeCache nowhere("/proc/nowhere/cache"), none("");
    for (const CodeCache& unusable : {nowhere, none}) {
        unusable.store("key", object);
        EXPECT_FALSE(unusable.load("key", "cpu"));
    }
}

TEST(CodeKey, ChangesWithTextArchitectureAndToolchain) {
    KernelSource source{"text", "entry", 1, 0};
    Arch arch;
    arch.name = "sm_90a";
    std::string key = code_key(source, arch, "compiler 1");
    EXPECT_EQ(code_key(source, arch, "compiler 1"), key);
    EXPECT_NE(code_key(source, arch, "compiler 2"), key);
    source.text = "text2";
    EXPECT_NE(code_key(source, arch, "compiler 1"), key);
    source.text = "text", arch.name = "sm_80";
    EXPECT_NE(code_key(source, arch, "compiler 1"), key);
}

}  // namespace
}  // namespace tilewright
