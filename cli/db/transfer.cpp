// tilewright db export, import.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "backends/backend.h"
#include "cli/db/commands.h"
#include "cli/db/hooks.h"
#include "cli/db/space.h"
#include "core/scratch_directory.h"
#include "db/tools/transfer.h"
#include "runtime/device_class.h"

namespace tilewright::cli {

int db_export(const Arguments& arguments) {
    std::vector<std::string> files;
    std::string format = "json", out, problem;
    bool all = false;
    CommandLine line("db export", "writes the winners, or all measurements, as text");
    line.positional("FILE", &files, "a tuning database; default: the user's")
        .option("format", &format, "FORMAT", "json (a line each), csv, t4 (one problem on one device), t1 (the space that it was tuned in)")
        .option("problem", &problem, "TEXT", "of this problem alone")
        .option("out", &out, "FILE", "where to; default: standard output")
        .flag("all", &all, "every measurement, not the winners alone")
        .example("tilewright db export t.db --format csv --out t.csv")
        .example("tilewright db export t.db --format t1 --problem forward:b1,hq8,hkv2,sq1024,skv1024,d64,fp32,causal --out space.T1.json");
    if (auto exit = line.parse(arguments)) return *exit;
    const Result<ExportFormat> parsed = format == "t1" ? ExportFormat::t4 : parse_export_format(format);
    if (!parsed.ok()) return fail("db export", parsed.status());
    if (!problem.empty()) {
        const Result<Problem> wanted = parse_problem(problem);
        if (!wanted.ok()) return fail("db export", wanted.status());
        problem = to_text(*wanted);
    }
    const Result<std::string> path = database_argument(files);
    if (!path.ok()) return fail("db export", path.status());
    Result<Store> store = Store::open(*path, StoreMode::read);
    if (!store.ok()) return fail("db export", store.status());
    const Result<std::string> text = format == "t1" ? space_as_t1(*store, problem) : export_rows(*store, {*parsed, !all, problem});
    if (!text.ok()) return fail("db export", text.status());
    if (out.empty()) return std::fputs(text->c_str(), stdout) < 0 ? fail("db export", "standard output cannot be written") : exit_success;
    const Status written = write_file(out, *text);
    return written.ok() ? exit_success : fail("db export", written);
}

namespace {

// A device's class by its id; it must be there.
Result<DeviceClass> class_of(const std::string& id) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, open_device(id));
    return device_class(device->info());
}

Result<ImportReport> import_file(const std::string& file, const std::string& format, Store& into, const ImportContext& context) {
    if (format == "db") return import_database(file, into, context);
    if (format == "aotriton") return import_aotriton(file, into, context);
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::string text, read_file(file));
    if (format == "json") return import_json(text, into, context);
    if (format == "t4") return import_t4(text, into, context);
    return invalid_argument(format + " is no import format: json, db, t4, aotriton");
}

}  // namespace

int db_import(const Arguments& arguments) {
    std::vector<std::string> files;
    std::string format = "json", into, problem, device;
    CommandLine line("db import", "stores the sound rows of a file and names the others; exits with 1 if there are others");
    line.positional("FILE", &files, "what to import")
        .option("format", &format, "FORMAT", "json (lines, as exported), db (a tuning database), t4, aotriton")
        .option("db", &into, "FILE", "the database to store into; default: the user's")
        .option("problem", &problem, "TEXT", "t4: the problem that was measured")
        .option("device", &device, "ID", "t4: the device that it was measured on")
        .example("tilewright db import t.jsonl --db t.db");
    if (auto exit = line.parse(arguments)) return *exit;
    if (files.size() != 1) return fail("db import", "one file is wanted, not " + std::to_string(files.size()));
    ImportContext context;
    context.legal = check_hooks().legal;
    context.toolchain.compiler = format == "aotriton" ? "AOTriton" : "imported";
    // AOTriton's tiles belong to other kernels: seeds for tuning, not configs to run as they are.
    if (format == "aotriton") context.legal = nullptr;
    if (format == "t4") {
        if (problem.empty() || device.empty()) return fail("db import", "t4 does not say what was measured where: --problem and --device are needed");
        const Result<Problem> parsed = parse_problem(problem);
        if (!parsed.ok()) return fail("db import", parsed.status());
        const Result<DeviceClass> on = class_of(device);
        if (!on.ok()) return fail("db import", on.status());
        context.problem = *parsed;
        context.device = *on;
    }
    const Result<std::string> path = database_argument(into.empty() ? std::vector<std::string>{} : std::vector<std::string>{into});
    if (!path.ok()) return fail("db import", path.status());
    Result<Store> store = Store::open(*path, StoreMode::create);
    if (!store.ok()) return fail("db import", store.status());
    const Result<ImportReport> report = import_file(files[0], format, *store, context);
    if (!report.ok()) return fail("db import", report.status());
    if (line.json()) {
        std::printf("%s\n", nlohmann::ordered_json{{"into", *path}, {"rows", report->rows}, {"refused", report->refused}}.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    } else {
        for (const std::string& text : report->refused) std::printf("refused: %s\n", text.c_str());
        std::printf("%s: %lld measurements stored, %zu refusals\n", path->c_str(), (long long)report->rows, report->refused.size());
    }
    return report->refused.empty() ? exit_success : exit_no;
}

}  // namespace tilewright::cli
