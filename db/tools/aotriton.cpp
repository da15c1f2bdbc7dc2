// Reading AOTriton's tuning tables, which hold the chosen tiles of AMD archs and no times.
#include <algorithm>
#include <iterator>

#include "db/file_system.h"
#include "db/sqlite.h"
#include "db/tools/t4.h"

namespace tilewright {
namespace {

struct Table {
    const char* name;
    Operation operation;
};
constexpr Table tables[] = {
    {"FLASH$attn_fwd", Operation::forward},
    {"FLASH$bwd_kernel_dk_dv", Operation::backward},
    {"FLASH$bwd_kernel_dq", Operation::backward},
    {"FLASH$bwd_kernel_fuse", Operation::backward},
};

// What a row is read from, in the order of `columns`.
namespace column {
enum : int { gpu, dtype, seq_q, seq_kv, causal_type, head_dim, bias_type, alibi, block_m, block_n, num_warps, waves_per_eu, num_stages, foreign };
}
struct ColumnNames {
    const char* name;
    const char* earlier;  // in tables before GPUs had models and windows; null: the same. SQLite's names are the same in any case
    bool needed;          // else 0 where a table lacks it
};
constexpr ColumnNames columns[] = {
    {"gpu", "arch", true},
    {"inputs$Q_dtype", nullptr, true},
    {"inputs$Max_seqlen_q", nullptr, true},  // of backward kernels: max_seqlen_q
    {"inputs$Max_seqlen_k", nullptr, true},
    {"inputs$CAUSAL_TYPE", "inputs$CAUSAL", true},
    {"inputs$BLOCK_DMODEL", nullptr, true},
    {"inputs$BIAS_TYPE", nullptr, false},
    {"inputs$USE_ALIBI", nullptr, false},
    {"tuned_kernel$BLOCK_M", nullptr, true},
    {"tuned_kernel$BLOCK_N", nullptr, true},
    {"compiler_options$num_warps", nullptr, true},
    {"compiler_options$waves_per_eu", "tuned_kernel$waves_per_eu", true},
    {"compiler_options$num_stages", nullptr, true},
};
static_assert(std::size(columns) == column::foreign);
// A row where one of these is not 0 computes something else than we do.
constexpr const char* foreign_columns[] = {"inputs$ENABLE_DROPOUT", "inputs$INT8", "inputs$INT8_KV", "inputs$USE_P_SCALE"};

Result<bool> has_column(sqlite::Connection& connection, const std::string& table, const std::string& name) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const find, connection.prepare("SELECT count(*) FROM pragma_table_info(?) WHERE name = ? COLLATE NOCASE"));
    find->bind(table).bind(name);
    TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t count, find->run_integer());
    return count > 0;
}

// A SELECT of the columns, then whether a row is foreign.
Result<std::string> query_of(sqlite::Connection& connection, const char* table) {
    std::string query = "SELECT ";
    for (const ColumnNames& wanted : columns) {
        std::string term = wanted.needed ? "" : "0";
        for (const char* known : {wanted.earlier, wanted.name}) {
            if (!known) continue;
            TILEWRIGHT_ASSIGN_OR_RETURN(const bool there, has_column(connection, table, known));
            if (there) term = '"' + std::string(known) + '"';
        }
        if (term.empty()) return invalid_argument(std::string("table ") + table + " has no column " + wanted.name);
        query += term + ", ";
    }
    query += "0";
    for (const char* other : foreign_columns) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool there, has_column(connection, table, other));
        if (there) query += " OR \"" + std::string(other) + "\" <> 0";
    }
    return query + " FROM \"" + table + "\" ORDER BY rowid";
}

Result<DType> dtype_of(std::string_view text) {
    if (text == "torch.float16") return DType::fp16;
    if (text == "torch.bfloat16") return DType::bf16;
    if (text == "torch.float32") return DType::fp32;
    return invalid_argument(std::string(text.substr(0, 40)) + " is no element type of ours");
}

// CAUSAL_TYPE: 0 none, 1 top-left (all that CAUSAL knew), 2 bottom-right; 3, windows of any extent, is tuned with causal ones.
Status set_mask(int64_t causal_type, Problem& problem) {
    if (causal_type < 0 || causal_type > 3) return invalid_argument("CAUSAL_TYPE " + std::to_string(causal_type) + " is not one of 0 .. 3");
    if (causal_type != 0) problem.window_right = 0;
    if (causal_type == 1) problem.alignment = Alignment::top_left;
    return {};
}

Result<int> small(const sqlite::Statement& row, int place, const char* what) {
    const int64_t value = row.integer(place);
    if (value < 0 || value > 4096) return invalid_argument(std::string(what) + " " + std::to_string(value) + " is not within 0 .. 4096");
    return static_cast<int>(value);
}

Result<MeasurementRow> read_row(const sqlite::Statement& row, const Table& table, const ImportContext& context) {
    MeasurementRow made;
    made.toolchain = context.toolchain;
    const std::string model(row.text(column::gpu));
    const std::string arch = model.substr(0, model.find('_'));  // "gfx942_mod0"
    if (!arch.starts_with("gfx") || arch.size() > 8) return invalid_argument("gpu '" + model.substr(0, 40) + "' names no gfx arch");
    made.device = {"amd", arch, "", arch, 1};
    Problem& problem = made.problem;
    problem.operation = table.operation;
    TILEWRIGHT_ASSIGN_OR_RETURN(problem.dtype, dtype_of(row.text(column::dtype)));
    problem.seq_q = row.integer(column::seq_q);
    problem.seq_kv = row.integer(column::seq_kv);
    TILEWRIGHT_RETURN_IF_ERROR(set_mask(row.integer(column::causal_type), problem));
    problem.head_dim = problem.head_dim_v = row.integer(column::head_dim);
    problem.bias = row.integer(column::bias_type) != 0;
    problem.alibi = row.integer(column::alibi) != 0;
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    Measurement& m = made.measurement;
    m.outcome = Outcome::imported;
    TILEWRIGHT_ASSIGN_OR_RETURN(m.config.block_q, small(row, column::block_m, "BLOCK_M"));
    TILEWRIGHT_ASSIGN_OR_RETURN(m.config.block_kv, small(row, column::block_n, "BLOCK_N"));
    TILEWRIGHT_ASSIGN_OR_RETURN(m.config.workers, small(row, column::num_warps, "num_warps"));
    TILEWRIGHT_ASSIGN_OR_RETURN(const int waves, small(row, column::waves_per_eu, "waves_per_eu"));
    TILEWRIGHT_ASSIGN_OR_RETURN(const int stages, small(row, column::num_stages, "num_stages"));
    // 0 leaves the choice to their compiler; ours needs a number.
    m.config.blocks = std::max(waves, 1);
    m.config.stages = std::max(stages, 1);
    if (m.config.block_q < 1 || m.config.block_kv < 1 || m.config.workers < 1) return invalid_argument("BLOCK_M, BLOCK_N and num_warps are at least 1");
    m.note = std::string(table.name) + " of AOTriton, which does not say batch and heads";
    return made;
}

}  // namespace

Result<std::vector<MeasurementRow>> read_aotriton(const std::string& path, const ImportContext& context, std::vector<std::string>& refused) {
    TILEWRIGHT_RETURN_IF_ERROR(check_database_file(path));
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Connection connection, sqlite::Connection::open(path, path, SQLITE_OPEN_READONLY, 2000));
    TILEWRIGHT_RETURN_IF_ERROR(sqlite::harden(connection));
    std::vector<MeasurementRow> rows;
    int64_t others = 0;
    bool any = false;
    for (const Table& table : tables) {
        // A view of that name is not what AOTriton ships.
        TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const find, connection.prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?"));
        find->bind(std::string_view(table.name));
        TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t present, find->run_integer());
        if (present == 0) continue;
        any = true;
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::string query, query_of(connection, table.name));
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<sqlite::Statement> row, connection.prepare_once(query));
        for (int64_t number = 1;; ++number) {
            TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, row->step());
            if (!more) break;
            if (row->integer(column::foreign) != 0) {
                ++others;
                continue;
            }
            Result<MeasurementRow> made = read_row(*row, table, context);
            if (made.ok()) rows.push_back(*std::move(made));
            else refused.push_back("row " + std::to_string(number) + " of " + table.name + ": " + made.status().message());
        }
    }
    if (!any) return invalid_argument(path + " holds none of AOTriton's tables FLASH$attn_fwd and FLASH$bwd_kernel_*");
    if (others > 0) refused.push_back(std::to_string(others) + " rows with dropout, 8-bit operands or a scaled P: not ours");
    return rows;
}

}  // namespace tilewright
