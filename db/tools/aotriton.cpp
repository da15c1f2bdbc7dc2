// Reading AOTriton's tuning tables, which hold the chosen tiles of AMD archs and no times.
#include "db/file_system.h"
#include "db/sqlite.h"
#include "db/tools/t4.h"

namespace tilewright {
namespace {

struct Table {
    const char* name;
    Operation operation;
    const char* seqlen_prefix;  // the forward's columns are spelled with a capital
};
constexpr Table tables[] = {
    {"FLASH$attn_fwd", Operation::forward, "inputs$Max_seqlen_"},
    {"FLASH$bwd_kernel_dk_dv", Operation::backward, "inputs$max_seqlen_"},
    {"FLASH$bwd_kernel_dq", Operation::backward, "inputs$max_seqlen_"},
    {"FLASH$bwd_kernel_fuse", Operation::backward, "inputs$max_seqlen_"},
};

// Those that a version of the tables lacks read as 0.
constexpr const char* foreign_columns[] = {"inputs$ENABLE_DROPOUT", "inputs$INT8", "inputs$INT8_KV", "inputs$USE_P_SCALE"};

Result<bool> has_column(sqlite::Connection& connection, const std::string& table, const std::string& column) {
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const find, connection.prepare("SELECT count(*) FROM pragma_table_info(?) WHERE name = ?"));
    find->bind(table).bind(column);
    TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t count, find->run_integer());
    return count > 0;
}

Result<DType> dtype_of(std::string_view text) {
    if (text == "torch.float16") return DType::fp16;
    if (text == "torch.bfloat16") return DType::bf16;
    if (text == "torch.float32") return DType::fp32;
    return invalid_argument(std::string(text.substr(0, 40)) + " is no element type of ours");
}

// CAUSAL_TYPE: 0 none, 1 top-left, 2 bottom-right; 3, windows of any extent, is tuned with causal ones.
Status set_mask(int64_t causal_type, Problem& problem) {
    if (causal_type < 0 || causal_type > 3) return invalid_argument("CAUSAL_TYPE " + std::to_string(causal_type) + " is not one of 0 .. 3");
    if (causal_type != 0) problem.window_right = 0;
    if (causal_type == 1) problem.alignment = Alignment::top_left;
    return {};
}

Result<int> small(const sqlite::Statement& row, int column, const char* what) {
    const int64_t value = row.integer(column);
    if (value < 0 || value > 4096) return invalid_argument(std::string(what) + " " + std::to_string(value) + " is not within 0 .. 4096");
    return static_cast<int>(value);
}

Result<MeasurementRow> read_row(const sqlite::Statement& row, const Table& table, const ImportContext& context) {
    MeasurementRow made;
    made.toolchain = context.toolchain;
    const std::string gpu(row.text(0));
    const std::string arch = gpu.substr(0, gpu.find('_'));  // "gfx942_mod0"
    if (!arch.starts_with("gfx") || arch.size() > 8) return invalid_argument("gpu '" + gpu.substr(0, 40) + "' names no gfx arch");
    made.device = {"amd", arch, "", arch, 1};
    Problem& problem = made.problem;
    problem.operation = table.operation;
    TILEWRIGHT_ASSIGN_OR_RETURN(problem.dtype, dtype_of(row.text(1)));
    problem.seq_q = row.integer(2);
    problem.seq_kv = row.integer(3);
    TILEWRIGHT_RETURN_IF_ERROR(set_mask(row.integer(4), problem));
    problem.head_dim = problem.head_dim_v = row.integer(5);
    problem.bias = row.integer(6) != 0;
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    Measurement& m = made.measurement;
    m.outcome = Outcome::imported;
    TILEWRIGHT_ASSIGN_OR_RETURN(m.config.block_q, small(row, 7, "BLOCK_M"));
    TILEWRIGHT_ASSIGN_OR_RETURN(m.config.block_kv, small(row, 8, "BLOCK_N"));
    TILEWRIGHT_ASSIGN_OR_RETURN(m.config.workers, small(row, 9, "num_warps"));
    TILEWRIGHT_ASSIGN_OR_RETURN(const int waves, small(row, 10, "waves_per_eu"));
    TILEWRIGHT_ASSIGN_OR_RETURN(const int stages, small(row, 11, "num_stages"));
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
    int64_t foreign = 0;
    bool any = false;
    for (const Table& table : tables) {
        // A view of that name is not what AOTriton ships.
        TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const find, connection.prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?"));
        find->bind(std::string_view(table.name));
        TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t present, find->run_integer());
        if (present == 0) continue;
        any = true;
        const std::string seqlen = table.seqlen_prefix;
        std::string query = "SELECT gpu, \"inputs$Q_dtype\", \"" + seqlen + "q\", \"" + seqlen + "k\", \"inputs$CAUSAL_TYPE\", \"inputs$BLOCK_DMODEL\"";
        for (const char* column : {"inputs$BIAS_TYPE", "tuned_kernel$BLOCK_M", "tuned_kernel$BLOCK_N", "compiler_options$num_warps",
                                   "compiler_options$waves_per_eu", "compiler_options$num_stages"}) {
            query += ", \"" + std::string(column) + "\"";
        }
        query += ", 0";
        for (const char* column : foreign_columns) {
            TILEWRIGHT_ASSIGN_OR_RETURN(const bool there, has_column(connection, table.name, column));
            if (there) query += " OR \"" + std::string(column) + "\" <> 0";
        }
        query += " FROM \"" + std::string(table.name) + "\" ORDER BY rowid";
        TILEWRIGHT_ASSIGN_OR_RETURN(const std::unique_ptr<sqlite::Statement> row, connection.prepare_once(query));
        for (int64_t number = 1;; ++number) {
            TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, row->step());
            if (!more) break;
            if (row->integer(12) != 0) {
                ++foreign;
                continue;
            }
            Result<MeasurementRow> made = read_row(*row, table, context);
            if (made.ok()) rows.push_back(*std::move(made));
            else refused.push_back("row " + std::to_string(number) + " of " + table.name + ": " + made.status().message());
        }
    }
    if (!any) return invalid_argument(path + " holds none of AOTriton's tables FLASH$attn_fwd and FLASH$bwd_kernel_*");
    if (foreign > 0) refused.push_back(std::to_string(foreign) + " rows with dropout, 8-bit operands or a scaled P: not ours");
    return rows;
}

}  // namespace tilewright
