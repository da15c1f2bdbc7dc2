// Export and import, and files that mean harm.
#include <gmock/gmock.h>

#include <algorithm>

#include "db/fixtures.h"
#include "db/json_rows.h"
#include "db/tools/check.h"
#include "db/tools/transfer.h"

namespace tilewright {
namespace {

using namespace testing;  // NOLINT: the fixtures are tilewright::testing
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TransferTest : public StoreTest {
protected:
    static std::vector<MeasurementRow> rows_of(Store& store) {
        std::vector<MeasurementRow> rows;
        EXPECT_TRUE(store.for_each([&](const MeasurementRow& row) { return rows.push_back(row), Status(); }).ok());
        return rows;
    }

    static void expect_equal(const MeasurementRow& a, const MeasurementRow& b) {
        EXPECT_EQ(a.problem, b.problem);
        EXPECT_EQ(a.device, b.device);
        EXPECT_EQ(a.toolchain, b.toolchain);
        EXPECT_EQ(to_json_line(a), to_json_line(b));
    }

    // What refuses `line`; empty if it is taken.
    std::string refusal(const std::string& line) {
        Store store = open();
        Result<ImportReport> report = import_json(line, store, {});
        EXPECT_TRUE(report.ok()) << report.status().message();
        if (!report.ok() || report->refused.empty()) return "";
        EXPECT_EQ(report->rows, 0);
        return report->refused.front();
    }

    static std::string line(const std::string& change_from = "", const std::string& change_to = "") {
        std::string text = to_json_line({causal_1024(), device(), toolchain(), timed(100), true});
        if (const size_t at = text.find(change_from); !change_from.empty() && at != text.npos) text.replace(at, change_from.size(), change_to);
        return text;
    }
};

TEST_F(TransferTest, what_is_exported_as_json_comes_back_equal) {
    Store from = open(StoreMode::create, "a.db");
    Measurement full = timed(123.456789012345, 128);
    full.clock_mhz = 1980;
    full.exclusive = 0;
    full.note = "quotes \" and\nnew lines, umlauts ä";
    add(from, full, problem("backward:b2,hq4,hkv4,sq100,skv200,d40,dv72,bf16,window128:3,topleft,softcap,bias,alibi,sink"));
    Measurement failed = timed(0, 24);
    failed.p20_us = failed.p80_us = 0;
    failed.outcome = Outcome::timeout;
    add(from, failed);
    const Result<std::string> text = export_rows(from, {ExportFormat::json, false});
    ASSERT_TRUE(text.ok());
    Store to = open(StoreMode::create, "b.db");
    const Result<ImportReport> report = import_json(*text, to, {});
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->rows, 2);
    EXPECT_THAT(report->refused, IsEmpty());
    const std::vector<MeasurementRow> a = rows_of(from), b = rows_of(to);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) expect_equal(a[i], b[i]);
    const Result<std::string> winners = export_rows(from, {});
    ASSERT_TRUE(winners.ok());
    EXPECT_EQ(std::count(winners->begin(), winners->end(), '\n'), 1) << "the winners alone";
}

TEST_F(TransferTest, csv_has_a_column_for_every_field_and_quotes_what_needs_it) {
    Store store = open();
    Measurement measurement = timed(100);
    measurement.note = "a \"b\", c";
    add(store, measurement);
    const Result<std::string> text = export_rows(store, {ExportFormat::csv, true});
    ASSERT_TRUE(text.ok());
    EXPECT_THAT(*text, HasSubstr("problem,backend,"));
    EXPECT_THAT(*text, HasSubstr(",note,block_q,block_kv,"));
    EXPECT_THAT(*text, HasSubstr("\"forward:b1,hq8,hkv2,sq1024,skv1024,d64,fp32,causal\",cpu,cpu,Test CPU,2,"));
    EXPECT_THAT(*text, HasSubstr("\"a \"\"b\"\", c\",64,64,"));
}

TEST_F(TransferTest, t4_holds_one_problem_on_one_device_and_comes_back) {
    Store store = open();
    add(store, timed(1500, 64));
    Measurement failed = timed(0, 24);
    failed.p20_us = failed.p80_us = 0;
    failed.outcome = Outcome::compile;
    add(store, failed);
    Measurement predicted = timed(700, 32);
    predicted.outcome = Outcome::predicted;
    add(store, predicted);
    const Result<std::string> text = export_rows(store, {ExportFormat::t4, false});
    ASSERT_TRUE(text.ok()) << text.status().message();
    EXPECT_THAT(*text, HasSubstr("\"invalidity\": \"compile\""));
    EXPECT_THAT(*text, ::testing::Not(HasSubstr("predicted"))) << "it is no result";
    Store to = open(StoreMode::create, "b.db");
    ImportContext context;
    context.problem = causal_1024();
    context.device = device();
    const Result<ImportReport> report = import_t4(*text, to, context);
    ASSERT_TRUE(report.ok());
    EXPECT_THAT(report->refused, IsEmpty());
    const std::vector<MeasurementRow> rows = rows_of(to);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].measurement.median_us, 1500);
    EXPECT_EQ(rows[0].measurement.measured_at, 1000);
    EXPECT_EQ(rows[1].measurement.outcome, Outcome::compile);
    add(store, timed(10), problem("forward:sq3"));
    EXPECT_THAT(export_rows(store, {ExportFormat::t4, false}).status().message(), HasSubstr("one problem on one device"));
    EXPECT_FALSE(import_t4("[1, 2]", to, context).ok());
    EXPECT_THAT(import_t4(R"({"results": [7, {"configuration": {"block_q": -4}, "invalidity": "correct"}]})", to, context)->refused, SizeIs(2));
}

TEST_F(TransferTest, a_line_that_is_not_sound_is_refused_and_named_and_the_others_are_stored) {
    Store store = open();
    const Result<ImportReport> report = import_json(line() + "\n\nnot json\n" + line("Test CPU", "Other CPU") + "\n" + line("\"median_us\":100", "\"median_us\":-1"), store, {});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->rows, 2);
    EXPECT_THAT(report->refused, ElementsAre(HasSubstr("line 3"), HasSubstr("line 5")));
}

TEST_F(TransferTest, malicious_lines_change_nothing_and_are_named) {
    EXPECT_EQ(refusal(line()), "");
    EXPECT_THAT(refusal(line("\"median_us\":100.0", "\"median_us\":1e999")), HasSubstr("line 1"));
    EXPECT_THAT(refusal(line("\"samples\":20", "\"samples\":99999999999999999999")), HasSubstr("'samples'"));
    EXPECT_THAT(refusal(line("\"samples\":20", "\"samples\":-3")), HasSubstr("-3"));
    EXPECT_THAT(refusal(line("\"block_q\":64", "\"block_q\":1e30")), HasSubstr("block_q"));
    EXPECT_THAT(refusal(line("\"block_q\":64", "\"block_q\":99999999999")), HasSubstr("block_q"));
    EXPECT_THAT(refusal(line("\"block_q\":64", "\"run\":\"rm\"")), HasSubstr("run"));
    EXPECT_THAT(refusal(line("sq1024", "sq99999999999999999999")), HasSubstr("malformed part"));
    EXPECT_THAT(refusal(line("\"units\":2", "\"units\":0")), HasSubstr("units"));
    EXPECT_THAT(refusal(line("\"outcome\"", "\"outcom\"")), HasSubstr("outcome"));
    EXPECT_THAT(refusal(line("\"outcome\":\"correct\"", "\"outcome\":\"best\"")), HasSubstr("best"));
    EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("line 1"));
    EXPECT_THAT(refusal("{\"problem\":" + std::string(100000, '[')), HasSubstr("line 1"));
}

TEST_F(TransferTest, sql_in_texts_is_text) {
    Store store = open();
    MeasurementRow row{causal_1024(), device("x'); DROP TABLE measurement; --"), toolchain("'; DELETE FROM problem; --"), timed(100), true};
    row.measurement.note = "\" OR 1=1; ATTACH 'other.db' AS x; --";
    const Result<ImportReport> report = import_json(to_json_line(row), store, {});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->rows, 1);
    expect_equal(rows_of(store).at(0), row);
    EXPECT_THAT(*check_database(store, 2000), IsEmpty());
}

TEST_F(TransferTest, a_config_that_asks_for_a_terabyte_is_refused_by_todays_limits) {
    Store store = open();
    ImportContext context;
    context.legal = [](const Problem&, const DeviceClass&, const Config& config) {
        return int64_t{config.block_kv} * config.stages > 4096 ? invalid_argument("more shared memory than there is") : Status();
    };
    const Result<ImportReport> report = import_json(line("\"block_kv\":64", "\"block_kv\":2000000000"), store, context);
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->rows, 0);
    EXPECT_THAT(report->refused, ElementsAre(HasSubstr("more shared memory than there is")));
    EXPECT_EQ(store.info()->measurements, 0);
}

TEST_F(TransferTest, a_database_with_triggers_or_views_of_its_own_is_not_imported) {
    {
        Store evil = open(StoreMode::create, "evil.db");
        add(evil, timed(1));
    }
    change(path("evil.db"), "CREATE VIEW secrets AS SELECT * FROM measurement");
    Store store = open();
    EXPECT_THAT(import_database(path("evil.db"), store, {}).status().message(), HasSubstr("view secrets"));
    change(path("evil.db"), "DROP VIEW secrets; CREATE TRIGGER t AFTER DELETE ON problem BEGIN DELETE FROM measurement; END");
    EXPECT_THAT(import_database(path("evil.db"), store, {}).status().message(), HasSubstr("trigger t"));
    EXPECT_EQ(store.info()->measurements, 0);
}

TEST_F(TransferTest, rows_of_a_database_that_its_own_rules_would_refuse_are_refused) {
    {
        Store from = open(StoreMode::create, "a.db");
        add(from, timed(1, 16));
        add(from, timed(2, 32));
        add(from, timed(3, 48));
    }
    change(path("a.db"), "UPDATE measurement SET median_us = 1e300 WHERE id = 1; UPDATE measurement SET outcome = 99 WHERE id = 2");
    Store store = open();
    const Result<ImportReport> report = import_database(path("a.db"), store, {});
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->rows, 1);
    EXPECT_THAT(report->refused, ElementsAre(HasSubstr("measurement 1"), HasSubstr("measurement 2")));
}

TEST_F(TransferTest, aotritons_tables_become_seeds_without_times) {
    change(path("ao.db"), R"(CREATE TABLE "FLASH$attn_fwd"(id INTEGER PRIMARY KEY, gpu TEXT, "inputs$Q_dtype" TEXT, "inputs$Max_seqlen_q" INTEGER,
        "inputs$Max_seqlen_k" INTEGER, "inputs$CAUSAL_TYPE" INTEGER, "inputs$BLOCK_DMODEL" INTEGER, "inputs$ENABLE_DROPOUT" INTEGER,
        "inputs$BIAS_TYPE" INTEGER, "tuned_kernel$BLOCK_M" INTEGER, "tuned_kernel$BLOCK_N" INTEGER, "compiler_options$waves_per_eu" INTEGER,
        "compiler_options$num_warps" INTEGER, "compiler_options$num_stages" INTEGER);
        INSERT INTO "FLASH$attn_fwd" VALUES(1, 'gfx942_mod0', 'torch.bfloat16', 1024, 2048, 3, 128, 0, 0, 128, 64, 2, 4, 1);
        INSERT INTO "FLASH$attn_fwd" VALUES(2, 'gfx942_mod0', 'torch.bfloat16', 1024, 2048, 3, 128, 1, 0, 128, 64, 2, 4, 1);
        INSERT INTO "FLASH$attn_fwd" VALUES(3, 'gfx942_mod0', 'torch.float8', 1024, 2048, 0, 128, 0, 0, 128, 64, 2, 4, 1);
        INSERT INTO "FLASH$attn_fwd" VALUES(4, 'gfx942''; --', 'torch.float16', 1024, 2048, 0, 128, 0, 0, 128, 64, 2, 4, 1);
        INSERT INTO "FLASH$attn_fwd" VALUES(5, 'gfx90a_mod0', 'torch.float16', 1024, 2048, 0, 128, 0, 1, 1000000000000, 64, 2, 4, 1);
        CREATE TABLE "FLASH$bwd_kernel_dq"(gpu TEXT, "inputs$Q_dtype" TEXT, "inputs$max_seqlen_q" INTEGER, "inputs$max_seqlen_k" INTEGER,
        "inputs$CAUSAL_TYPE" INTEGER, "inputs$BLOCK_DMODEL" INTEGER, "inputs$BIAS_TYPE" INTEGER, "tuned_kernel$BLOCK_M" INTEGER,
        "tuned_kernel$BLOCK_N" INTEGER, "compiler_options$waves_per_eu" INTEGER, "compiler_options$num_warps" INTEGER, "compiler_options$num_stages" INTEGER);
        INSERT INTO "FLASH$bwd_kernel_dq" VALUES('gfx1100_mod0', 'torch.float16', 512, 512, 0, 64, 1, 32, 16, 0, 2, 0))");
    Store store = open();
    const Result<ImportReport> report = import_aotriton(path("ao.db"), store, {});
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_THAT(report->refused, ElementsAre(HasSubstr("row 3"), HasSubstr("row 4"), HasSubstr("row 5"), HasSubstr("1 rows with dropout")));
    const std::vector<MeasurementRow> rows = rows_of(store);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(to_text(rows[0].problem), "forward:b1,hq1,hkv1,sq1024,skv2048,d128,bf16,causal");
    EXPECT_EQ(rows[0].device.arch, "gfx942");
    EXPECT_EQ(rows[0].measurement.outcome, Outcome::imported);
    EXPECT_EQ(rows[0].measurement.median_us, 0);
    const Config& config = rows[0].measurement.config;
    EXPECT_EQ(std::tuple(config.block_q, config.block_kv, config.workers, config.blocks, config.stages), std::tuple(128, 64, 4, 2, 1));
    EXPECT_EQ(to_text(rows[1].problem), "backward:b1,hq1,hkv1,sq512,skv512,d64,fp16,bias");
    EXPECT_EQ(rows[1].measurement.config.blocks, 1) << "0 leaves the choice to their compiler";
    EXPECT_THAT(import_aotriton(path(), store, {}).status().message(), HasSubstr("none of AOTriton's tables"));
}

TEST_F(TransferTest, aotritons_shards_and_earlier_tables_are_read_too) {
    // A file of one kernel and arch: no id, and the columns of today's exports.
    change(path("shard.db"), R"(CREATE TABLE FLASH$bwd_kernel_fuse (gpu TEXT, inputs$Q_dtype TEXT, inputs$max_seqlen_q INTEGER, inputs$max_seqlen_k INTEGER,
        inputs$CAUSAL_TYPE INTEGER, inputs$BLOCK_DMODEL INTEGER, inputs$ENABLE_DROPOUT INTEGER, inputs$PADDED_HEAD INTEGER, inputs$BIAS_TYPE INTEGER,
        inputs$USE_ALIBI INTEGER, inputs$INT8 INTEGER, inputs$INT8_KV INTEGER, inputs$USE_P_SCALE INTEGER, tuned_kernel$BLOCK_M INTEGER,
        tuned_kernel$BLOCK_N INTEGER, compiler_options$waves_per_eu INTEGER, compiler_options$num_warps INTEGER, compiler_options$num_stages INTEGER);
        INSERT INTO FLASH$bwd_kernel_fuse VALUES('gfx950_mod0', 'torch.bfloat16', 256, 512, 3, 48, 0, 1, 0, 1, 0, 0, 0, 64, 16, 2, 4, 1);
        INSERT INTO FLASH$bwd_kernel_fuse VALUES('gfx950_mod0', 'torch.bfloat16', 256, 512, 3, 48, 0, 1, 0, 0, 0, 1, 0, 64, 16, 2, 4, 1))");
    // Before GPUs had models and masks types.
    change(path("early.db"), R"(CREATE TABLE FLASH$attn_fwd (id INTEGER PRIMARY KEY, arch TEXT, inputs$Q_dtype TEXT, inputs$Max_seqlen_q INTEGER,
        inputs$Max_seqlen_k INTEGER, inputs$CAUSAL INTEGER, inputs$BLOCK_DMODEL INTEGER, tuned_kernel$BLOCK_M INTEGER, tuned_kernel$BLOCK_N INTEGER,
        tuned_kernel$waves_per_eu INTEGER, compiler_options$num_warps INTEGER, compiler_options$num_stages INTEGER);
        INSERT INTO FLASH$attn_fwd VALUES(1, 'gfx90a', 'torch.float16', 64, 64, 1, 32, 32, 16, 3, 2, 1))");
    change(path("lacking.db"), "CREATE TABLE FLASH$attn_fwd (gpu TEXT, inputs$Q_dtype TEXT)");
    Store store = open();
    const Result<ImportReport> shard = import_aotriton(path("shard.db"), store, {}), early = import_aotriton(path("early.db"), store, {});
    ASSERT_TRUE(shard.ok() && early.ok()) << shard.status().message() << early.status().message();
    EXPECT_THAT(shard->refused, ElementsAre(HasSubstr("1 rows with dropout")));
    EXPECT_THAT(early->refused, IsEmpty());
    const std::vector<MeasurementRow> rows = rows_of(store);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(to_text(rows[0].problem), "backward:b1,hq1,hkv1,sq256,skv512,d48,bf16,causal,alibi");
    EXPECT_EQ(rows[0].device.arch, "gfx950");
    EXPECT_EQ(to_text(rows[1].problem), "forward:b1,hq1,hkv1,sq64,skv64,d32,fp16,causal,topleft");
    EXPECT_EQ(std::pair(rows[1].device.arch, rows[1].measurement.config.blocks), std::pair(std::string("gfx90a"), 3));
    EXPECT_THAT(import_aotriton(path("lacking.db"), store, {}).status().message(), HasSubstr("FLASH$attn_fwd has no column inputs$Max_seqlen_q"));
}

}  // namespace
}  // namespace tilewright
