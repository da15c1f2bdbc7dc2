// Problems, devices and measurements that the database's tests share.
#pragma once
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

#include "core/scratch_directory.h"
#include "db/store.h"

namespace tilewright::testing {

inline Problem problem(const std::string& text) {
    Result<Problem> parsed = parse_problem(text);
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    return parsed.ok() ? *parsed : Problem{};
}

inline Problem causal_1024() { return problem("forward:b1,hq8,hkv2,sq1024,d64,fp32,causal"); }

inline DeviceClass device(const std::string& name = "Test CPU", int units = 2) { return {"cpu", "cpu", "", name, units}; }

inline Toolchain toolchain(const std::string& source = "aaaa") { return {"gcc 12.2.0", "-O3", source}; }

inline Config config(int block_q, int block_kv = 64) {
    Config made;
    made.block_q = block_q;
    made.block_kv = block_kv;
    return made;
}

inline Measurement timed(double median_us, int block_q = 64, int64_t measured_at = 1000) {
    Measurement measurement;
    measurement.config = config(block_q);
    measurement.median_us = median_us;
    measurement.p20_us = median_us * 0.99;
    measurement.p80_us = median_us * 1.01;
    measurement.samples = 20;
    measurement.error = 1e-6;
    measurement.measured_at = measured_at;
    return measurement;
}

// An open store in a folder that goes with the fixture.
class StoreTest : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(folder_.ok()) << folder_.status().message(); }

    std::string path(const std::string& name = "t.db") const { return folder_->file(name); }

    Store open(StoreMode mode = StoreMode::create, const std::string& name = "t.db") {
        Result<Store> store = Store::open(path(name), mode);
        EXPECT_TRUE(store.ok()) << store.status().message();
        if (!store.ok()) std::abort();
        return *std::move(store);
    }

    // Adds one row under causal_1024() unless told otherwise.
    static int64_t add(Store& store, const Measurement& measurement, const Problem& problem = causal_1024(),
                       const Toolchain& made_by = toolchain(), const DeviceClass& on = device()) {
        Result<MeasurementKey> key = store.put_key(problem, on, made_by);
        EXPECT_TRUE(key.ok()) << key.status().message();
        if (!key.ok()) return 0;
        Result<int64_t> id = store.add(*key, measurement);
        EXPECT_TRUE(id.ok()) << id.status().message();
        return id.ok() ? *id : 0;
    }

    static Status open_status(const std::string& path, StoreMode mode) { return Store::open(path, mode).status(); }

    // Runs SQL as another program would.
    static void change(const std::string& path, const std::string& sql) {
        sqlite3* handle = nullptr;
        ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
        char* message = nullptr;
        EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
        sqlite3_free(message);
        EXPECT_EQ(sqlite3_close(handle), SQLITE_OK);
    }

private:
    Result<ScratchDirectory> folder_ = ScratchDirectory::create();
};

}  // namespace tilewright::testing
