// Packs: made, loaded in place of a compiler, and whom they are believed from.
#include "runtime/pack.h"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/process.h"
#include "core/scratch_directory.h"
#include "db/pack.h"
#include "model/space.h"
#include "runtime/code_cache.h"
#include "runtime/packed_code.h"

namespace tilewright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A machine without a compiler.
class NoCompiler : public Backend {
public:
    const char* name() const override { return "amd"; }
    Result<std::string> toolchain() override { return Status(StatusCode::unavailable, "no compiler"); }
    Result<CodeObject> compile(const KernelSource&, const Arch&) override { return Status(StatusCode::unavailable, "no compiler"); }
    Result<Resources> inspect(const CodeObject&) override { return Status(StatusCode::unsupported, "not asked for"); }
    Result<std::vector<DeviceInfo>> devices() override { return std::vector<DeviceInfo>{}; }
    Result<std::unique_ptr<Device>> open(int) override { return Status(StatusCode::unavailable, "no device"); }
};

class Pack : public testing::Test {
protected:
    std::string file() const { return folder_.file("pack.db"); }
    void make(const std::string& library = library_version()) {
        Store store = *Store::open(file(), StoreMode::create);
        ASSERT_TRUE(write_pack(store, library, {{pack_key(source_, "gfx942"), "gfx942", bytes_}}).ok());
        ASSERT_TRUE(store.compact().ok());
    }
    void change(const std::string& sql) const {
        sqlite3* handle = nullptr;
        ASSERT_EQ(sqlite3_open(file().c_str(), &handle), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
        EXPECT_EQ(sqlite3_close(handle), SQLITE_OK);
    }
    PackedCode open(const std::string& arch = "gfx942") const { return PackedCode({file()}, arch); }

    const ScratchDirectory folder_ = *ScratchDirectory::create();
    const KernelSource source_{"a kernel's text", "entry", 64, 0};
    const std::string bytes_ = std::string("machine\0code", 12);
};

TEST_F(Pack, StandsInForTheCompiler) {
    make();
    NoCompiler backend;
    const Arch& arch = *find_arch("gfx942");
    const Result<CodeObject> object = compile_cached(backend, source_, arch, CodeCache(""), open());
    ASSERT_TRUE(object.ok()) << object.status().message();
    EXPECT_EQ(object->bytes, bytes_);
    KernelSource other = source_;
    other.text += " ";
    EXPECT_EQ(compile_cached(backend, other, arch, CodeCache(""), open()).status().code(), StatusCode::unavailable);
    EXPECT_FALSE(open().load(source_, "gfx90a"));
}

TEST_F(Pack, IsForItsArchAndVersionOfTheLibraryAlone) {
    make("0.0.9");
    EXPECT_THAT(open().paths(), IsEmpty());
    change("UPDATE pack SET library = '" + std::string(library_version()) + "'");
    EXPECT_THAT(open().paths(), ElementsAre(file()));
    EXPECT_THAT(open("gfx90a").paths(), IsEmpty());
    Store again = *Store::open(file(), StoreMode::write);
    EXPECT_THAT(write_pack(again, "x", {}).message(), HasSubstr("is a pack already"));
}

TEST_F(Pack, DamagedOrAddedKernelsAreNotLoaded) {
    make();
    const PackedCode before = open();
    change("UPDATE code SET bytes = x'00'");
    EXPECT_FALSE(open().load(source_, "gfx942")) << "its hash differs";
    change("UPDATE code SET hash = '" + std::string(40, '0') + "'");
    EXPECT_THAT(open().paths(), IsEmpty()) << "the list of hashes differs";
    EXPECT_FALSE(before.load(source_, "gfx942"));
    change("DELETE FROM pack");
    Store store = *Store::open(file(), StoreMode::read);
    EXPECT_EQ(read_pack(store).status().code(), StatusCode::not_found);
}

TEST_F(Pack, IsBelievedOnlyIfNobodyElseCouldHaveWrittenIt) {
    make();
    ASSERT_TRUE(check_owner(file()).ok()) << check_owner(file()).message();
    ASSERT_EQ(chmod(file().c_str(), 0664), 0);
    EXPECT_THAT(check_owner(file()).message(), HasSubstr("may be written by others"));
    EXPECT_THAT(open().paths(), IsEmpty());
    ASSERT_EQ(chmod(file().c_str(), 0644), 0);
    ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
    EXPECT_THAT(check_owner(file()).message(), HasSubstr("may be written by others"));
    ASSERT_EQ(chmod(folder_.path().c_str(), 0700), 0);
    ASSERT_EQ(symlink(file().c_str(), folder_.file("link.db").c_str()), 0);
    EXPECT_FALSE(check_owner(folder_.file("link.db")).ok());
    if (geteuid() == 0) {
        ASSERT_EQ(chown(file().c_str(), 12345, 12345), 0);
        EXPECT_THAT(check_owner(file()).message(), HasSubstr("belongs to user 12345"));
    }
}

TEST_F(Pack, HoldsTheKernelsThatARuntimeWillAskFor) {
    if (find_program("clang++-19").empty()) GTEST_SKIP() << "clang++-19 is not installed";
    const Arch& arch = *find_arch("gfx942");
    const Problem problem = *parse_problem("forward:b1,hq2,sq256,d64,bf16,causal"), won = *parse_problem("forward:b1,hq2,sq512,d64,bf16");
    MeasurementRow row{won, {"amd", "gfx942", "cdna", "an accelerator", 304}, {"cc", "-O3", "a"}, {}, true};
    row.measurement.config = ranked(search_space(won, arch), 3).back();
    row.measurement.median_us = row.measurement.p20_us = row.measurement.p80_us = 10;
    Store from = *Store::open(folder_.file("from.db"), StoreMode::create);
    ASSERT_TRUE(from.add_all({row}).ok());
    const Result<PackReport> report = make_pack({"gfx942"}, {problem}, &from, file());
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->rows, 1);
    EXPECT_THAT(report->skipped, IsEmpty());
    const PackedCode packs = open();
    for (const KernelSpec& spec : {dense_spec(problem, default_config(problem, arch)), dense_spec(won, row.measurement.config)}) {
        const Result<KernelSource> source = generate(spec, arch);
        ASSERT_TRUE(source.ok());
        EXPECT_TRUE(packs.load(*source, "gfx942")) << to_text(spec.problem);
    }
    EXPECT_THAT(make_pack({"gfx942"}, {problem}, nullptr, file()).status().message(), HasSubstr("exists"));
    EXPECT_THAT(make_pack({"cpu"}, {problem}, nullptr, folder_.file("x.db")).status().message(), HasSubstr("made for the processor"));
    EXPECT_THAT(make_pack({"gfx1"}, {problem}, nullptr, folder_.file("x.db")).status().message(), HasSubstr("unknown arch 'gfx1'"));
}

}  // namespace
}  // namespace tilewright
