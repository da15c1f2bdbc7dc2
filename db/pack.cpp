// The tables `pack` and `code`.
#include "db/pack.h"

#include <ctime>

#include "core/sha1.h"
#include "db/store_state.h"

namespace tilewright {
namespace {

Result<std::string> hash_list(sqlite::Connection& connection) {
    std::string text;
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const rows, connection.prepare("SELECT key, arch, hash FROM code ORDER BY key"));
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, rows->step());
        if (!more) return sha1(text);
        for (int column = 0; column < 3; ++column) text.append(rows->text(column)).append("\n");
    }
}

}  // namespace

Status write_pack(Store& store, const std::string& library, const std::vector<PackedKernel>& kernels) {
    sqlite::Connection& connection = store.state().connection;
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::begin(connection));
    TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t present, connection.integer("SELECT count(*) FROM pack"));
    if (present != 0) return invalid_argument(connection.path() + " is a pack already");
    for (const PackedKernel& kernel : kernels) {
        TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const add, connection.prepare("INSERT INTO code(key, arch, hash, bytes) VALUES(?,?,?,?)"));
        add->bind(kernel.key).bind(kernel.arch).bind(sha1(kernel.bytes)).bind_bytes(kernel.bytes);
        TILEWRIGHT_RETURN_IF_ERROR(add->run());
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::string list, hash_list(connection));
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const mark, connection.prepare("INSERT INTO pack(library, hash_list, made_at) VALUES(?,?,?)"));
    mark->bind(library).bind(list).bind(static_cast<int64_t>(std::time(nullptr)));
    TILEWRIGHT_RETURN_IF_ERROR(mark->run());
    return transaction.commit();
}

Result<PackFacts> read_pack(Store& store) {
    sqlite::Connection& connection = store.state().connection;
    PackFacts facts;
    TILEWRIGHT_ASSIGN_OR_RETURN(const int64_t packs, connection.integer("SELECT count(*) FROM pack"));
    if (packs != 1) return Status(StatusCode::not_found, connection.path() + " was not made by `tilewright pack`");
    TILEWRIGHT_ASSIGN_OR_RETURN(facts.library, connection.text("SELECT library FROM pack"));
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::string stored, connection.text("SELECT hash_list FROM pack"));
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::string found, hash_list(connection));
    if (stored != found) return Status(StatusCode::io, "the kernels of " + connection.path() + " are not those that were packed: the list of their hashes differs");
    TILEWRIGHT_ASSIGN_OR_RETURN(facts.kernels, connection.integer("SELECT count(*) FROM code"));
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const archs, connection.prepare("SELECT DISTINCT arch FROM code ORDER BY arch"));
    while (true) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const bool more, archs->step());
        if (!more) return facts;
        facts.archs.emplace_back(archs->text(0));
    }
}

Result<std::string> packed_kernel(Store& store, const std::string& key, const std::string& arch) {
    sqlite::Connection& connection = store.state().connection;
    TILEWRIGHT_ASSIGN_OR_RETURN(sqlite::Statement* const find, connection.prepare("SELECT hash, bytes FROM code WHERE key = ? AND arch = ?"));
    find->bind(key).bind(arch);
    TILEWRIGHT_ASSIGN_OR_RETURN(const bool row, find->step());
    if (!row) return Status(StatusCode::not_found, connection.path() + " holds no kernel " + key + " for " + arch);
    const std::string hash(find->text(0));
    std::string bytes(find->bytes(1));
    find->reset();
    if (sha1(bytes) != hash) return Status(StatusCode::io, "kernel " + key + " of " + connection.path() + " is damaged: its hash differs");
    return bytes;
}

}  // namespace tilewright
