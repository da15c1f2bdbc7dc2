// Fuzz target: database files. An input that begins like SQLite's header is a file; any other is changes to a sound file, three bytes
// each: where, in units of a few bytes, and what. Whatever it is, everything that reads files ends with an answer or an error.
#include <unistd.h>

#include <cstring>
#include <string>

#include "core/scratch_directory.h"
#include "db/lookup/load.h"
#include "db/tools/check.h"
#include "db/tools/transfer.h"
#include "fuzz/fuzz.h"

using namespace tilewright;

namespace {

struct Files {
    Result<ScratchDirectory> folder = ScratchDirectory::create();
    std::string sound;  // a file's bytes

    Files() {
        FUZZ_REQUIRE(folder.ok());
        {
            Result<Store> store = Store::open(folder->file("sound.db"), StoreMode::create);
            FUZZ_REQUIRE(store.ok());
            for (int i = 0; i < 12; ++i) {
                MeasurementRow row{*parse_problem("forward:b1,hq8,hkv2,sq" + std::to_string(64 << i % 4) + ",d64,causal"), {"cpu", "cpu", "", "a device", 2}, {"cc", "-O2", i % 2 ? "a" : "b"}, {}, true};
                row.measurement.config.block_q = 16 << i % 3;
                row.measurement.median_us = row.measurement.p20_us = row.measurement.p80_us = 10 + i;
                row.measurement.measured_at = 1000 + i;
                if (i >= 9) row.measurement.outcome = Outcome::predicted;
                FUZZ_REQUIRE(store->add_all({row}).ok());
            }
            FUZZ_REQUIRE(store->add_misses({{"forward:sq9", {"cpu", "cpu", "", "a device", 2}, 1, 5}}).ok());
            FUZZ_REQUIRE(store->compact().ok());
        }
        const Result<std::string> bytes = read_file(folder->file("sound.db"));
        FUZZ_REQUIRE(bytes.ok());
        sound = *bytes;
    }
};

std::string contents(const std::string& sound, const uint8_t* data, size_t size) {
    constexpr char header[] = "SQLite format 3";
    if (size >= sizeof header && std::memcmp(data, header, sizeof header) == 0) return {reinterpret_cast<const char*>(data), size};
    std::string bytes = sound;
    for (; size >= 3; data += 3, size -= 3) bytes[(static_cast<size_t>(data[0]) << 8 | data[1]) * bytes.size() / 65536] = static_cast<char>(data[2]);
    return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const Files& files = *new Files;
    const std::string path = files.folder->file("input.db"), other = files.folder->file("into.db");
    FUZZ_REQUIRE(write_file(path, contents(files.sound, data, size)).ok());
    for (const std::string& left : {path + "-wal", path + "-shm", path + "-journal", other, other + "-wal", other + "-shm"}) unlink(left.c_str());
    if (Result<Store> store = Store::open(path, StoreMode::read, 0); store.ok()) {
        (void)lookup::load_rows(*store);
        (void)check_database(*store, 2000);
        (void)store->info();
        (void)store->misses();
        (void)store->for_each_best([](const MeasurementRow&) { return Status(); });
        (void)export_rows(*store, {ExportFormat::json, false});
    }
    if (Result<Store> into = Store::open(other, StoreMode::create); into.ok()) {
        (void)import_database(path, *into, {});
        (void)import_aotriton(path, *into, {});
    }
    DatabaseOptions options;
    options.user_path = path;
    options.use_system = options.use_defaults = options.log_misses = false;
    TuningDatabase database = TuningDatabase::open(options);
    (void)database.lookup(*parse_problem("forward:b1,hq8,hkv2,sq100,d64,causal"), database.device({"cpu", "cpu", "", "a device", 2}));
    if (Result<Store> store = Store::open(path, StoreMode::write, 0); store.ok()) {
        if (const auto key = store->put_key({}, {"cpu", "cpu", "", "a device", 2}, {}); key.ok()) {
            Measurement measurement;
            measurement.median_us = measurement.p20_us = measurement.p80_us = 1;
            (void)store->add(*key, measurement);
        }
    }
    return 0;
}
