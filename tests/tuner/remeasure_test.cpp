// Rows of a database timed again: which agree, and what is said of those that do not.
#include "tuner/remeasure.h"

#include <gmock/gmock.h>

#include "core/scratch_directory.h"
#include "runtime/device_class.h"
#include "tuner/device_tasks.h"
#include "tuner/fault_worker.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

WorkerReply reply_of(double median_us, double spread_us = 1) {
    WorkerReply reply;
    Timing timing;
    timing.median_us = median_us, timing.p20_us = median_us - spread_us / 2, timing.p80_us = median_us + spread_us / 2;
    reply.timings = {timing};
    return reply;
}

Measurement before(double median_us, double spread_us = 1) {
    Measurement m;
    m.median_us = median_us, m.p20_us = median_us - spread_us / 2, m.p80_us = median_us + spread_us / 2;
    return m;
}

TEST(Remeasure, MediansDisagreeBeyondTheToleranceAndBothSpreads) {
    EXPECT_EQ(disagreement(before(100), reply_of(109), 0.1), "");
    EXPECT_THAT(disagreement(before(100), reply_of(112), 0.1), HasSubstr("100.00 us then, 112.00 us now"));
    EXPECT_THAT(disagreement(before(100), reply_of(80), 0.1), HasSubstr("80.00 us now"));
    EXPECT_EQ(disagreement(before(100, 10), reply_of(115, 6), 0.1), "") << "so much they vary by themselves";
    WorkerReply wrong = reply_of(100);
    wrong.outcome = Outcome::correctness, wrong.message = "row 3";
    EXPECT_THAT(disagreement(before(100), wrong, 0.1), HasSubstr("row 3"));
}

TEST(Remeasure, DrawsRowsOfThisDeviceAloneAndTheSameForTheSameSeed) {
    const ScratchDirectory folder = *ScratchDirectory::create();
    Store store = *Store::open(folder.file("t.db"), StoreMode::create);
    RemeasureOptions options;
    options.worker_command = test::fault_worker_command("brief");
    options.sample = 2;
    EXPECT_EQ(remeasure(store, "cpu:0", options).status().code(), StatusCode::not_found);
    const DeviceClass here = device_class(*find_device("cpu:0"));
    const auto add = [&](const DeviceClass& device, int seq, int block_q) {
        MeasurementRow row{test::fault_problem(), device, {"cc", "-O2", "a"}, {}, true};
        row.problem.seq_q = row.problem.seq_kv = seq;
        row.measurement = before(1e6);
        row.measurement.config.block_q = block_q;
        ASSERT_TRUE(store.add_all({row}).ok());
    };
    for (int seq : {16, 32, 48, 64}) add(here, seq, 16);
    add({"cpu", "cpu", "cpu", "another", 3}, 80, 16);
    auto first = remeasure(store, "cpu:0", options), second = remeasure(store, "cpu:0", options);
    ASSERT_TRUE(first.ok() && second.ok()) << first.status().message();
    EXPECT_EQ(first->rows, 4);
    ASSERT_EQ(first->sample.size(), 2u);
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(first->sample[i].row.problem, second->sample[i].row.problem);
    // The worker's times have nothing to do with a second.
    for (const Remeasured& again : first->sample) EXPECT_NE(again.disagreement, "");
    options.sample = 0;
    EXPECT_EQ(remeasure(store, "cpu:0", options).status().code(), StatusCode::invalid_argument);
}

}  // namespace
}  // namespace tilewright
