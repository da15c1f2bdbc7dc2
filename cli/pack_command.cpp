// tilewright pack: winners and compiled kernels in one file, for machines without a compiler.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/cli.h"
#include "runtime/pack.h"
#include "tilewright/tuning.h"

namespace tilewright::cli {

int pack_command(const Arguments& arguments) {
    std::vector<std::string> archs, texts;
    std::string from, out;
    CommandLine line("pack", "writes a database of winners and their compiled kernels, for machines without a compiler");
    line.option("arch", &archs, "NAME", "for which architecture; may be given several times")
        .option("problem", &texts, "TEXT", "a problem to pack beside those that were tuned; may be given several times")
        .option("db", &from, "FILE", "whose winners to pack; default: the user's database, if there is one")
        .option("out", &out, "FILE", "the pack, a new file; put it where system databases are looked for")
        .example("tilewright pack --arch gfx942 --arch sm_90a --db t.db --out /usr/share/tilewright/site.db");
    if (auto exit = line.parse(arguments)) return *exit;
    if (archs.empty() || out.empty()) return fail("pack", "--arch NAME and --out FILE are needed");
    std::vector<Problem> problems;
    for (const std::string& text : texts) {
        const Result<Problem> problem = parse_problem(text);
        if (!problem.ok()) return fail("pack", problem.status());
        problems.push_back(*problem);
    }
    std::optional<Store> source;
    if (const std::string path = from.empty() ? user_database_path() : from; !path.empty()) {
        Result<Store> store = Store::open(path, StoreMode::read);
        if (store.ok()) source = *std::move(store);
        else if (!from.empty() || store.status().code() != StatusCode::not_found) return fail("pack", store.status());
    }
    if (!source && problems.empty()) return fail("pack", "there is nothing to pack: no database and no --problem");
    const Result<PackReport> report = make_pack(archs, problems, source ? &*source : nullptr, out);
    if (!report.ok()) return fail("pack", report.status());
    if (line.json()) {
        std::printf("%s\n", nlohmann::ordered_json{{"out", out}, {"winners", report->rows}, {"kernels", report->kernels}, {"skipped", report->skipped}}.dump(2).c_str());
    } else {
        for (const std::string& skipped : report->skipped) std::printf("skipped: %s\n", skipped.c_str());
        std::printf("%s: %lld winners, %lld kernels\n", out.c_str(), (long long)report->rows, (long long)report->kernels);
    }
    return report->skipped.empty() ? exit_success : exit_no;
}

}  // namespace tilewright::cli
