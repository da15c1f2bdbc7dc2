// Problems and answers between C and C++.
#include <algorithm>
#include <cstring>

#include "runtime/c_api.h"

namespace tilewright::c_api {
namespace {

thread_local std::string last_error;

const char* c_string(std::string_view interned) { return interned.empty() ? nullptr : interned.data(); }

}  // namespace

tilewright_status report(const Status& status) {
    last_error = status.message();
    static_assert(static_cast<int>(StatusCode::internal) == TILEWRIGHT_INTERNAL && static_cast<int>(StatusCode::compile) == TILEWRIGHT_COMPILE);
    return static_cast<tilewright_status>(status.code());
}

Result<Problem> problem_of(const tilewright_problem* caller) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const tilewright_problem given, completed("problem", caller, TILEWRIGHT_INIT_PROBLEM, first_problem_size));
    Problem p;
    if (given.operation < TILEWRIGHT_FORWARD || given.operation > TILEWRIGHT_DECODE)
        return invalid_argument("operation is " + std::to_string(given.operation) + "; it must be from 1 to 3");
    p.operation = static_cast<Operation>(given.operation);
    p.deterministic = given.deterministic != 0;
    p.page_size = given.page_size, p.shortest_kv = given.shortest_kv, p.length_seed = given.length_seed;
    p.packed = given.packed != 0, p.shortest_q = given.shortest_q;
    if (given.dtype < TILEWRIGHT_FP32 || given.dtype > TILEWRIGHT_BF16)
        return invalid_argument("dtype is " + std::to_string(given.dtype) + "; it must be from 1 to 3");
    if (given.alignment < TILEWRIGHT_BOTTOM_RIGHT || given.alignment > TILEWRIGHT_TOP_LEFT)
        return invalid_argument("alignment is " + std::to_string(given.alignment) + "; it must be 1 or 2");
    p.batch = given.batch, p.heads_q = given.heads_q, p.heads_kv = given.heads_kv, p.seq_q = given.seq_q, p.seq_kv = given.seq_kv;
    p.head_dim = given.head_dim, p.head_dim_v = given.head_dim_v;
    p.dtype = static_cast<DType>(given.dtype), p.alignment = static_cast<Alignment>(given.alignment);
    p.window_left = given.window_left, p.window_right = given.window_right;
    p.softcap = given.softcap != 0, p.bias = given.bias != 0, p.alibi = given.alibi != 0, p.sink = given.sink != 0;
    TILEWRIGHT_RETURN_IF_ERROR(validate(p));
    return p;
}

Status fill(const LookupResult& found, tilewright_config* config) {
    TILEWRIGHT_RETURN_IF_ERROR(check_struct("config", config, first_config_size));
    static_assert(static_cast<int>(Provenance::heuristic) == TILEWRIGHT_HEURISTIC && static_cast<int>(differs_deterministic) == TILEWRIGHT_DIFFERS_DETERMINISTIC);
    tilewright_config answer = TILEWRIGHT_INIT_CONFIG;
    answer.struct_size = std::min<uint64_t>(config->struct_size, sizeof answer);
    answer.provenance = static_cast<int32_t>(found.provenance);
    answer.block_q = found.config.block_q, answer.block_kv = found.config.block_kv, answer.stages = found.config.stages, answer.workers = found.config.workers;
    answer.median_us = found.median_us, answer.distance = found.distance;
    answer.spread = found.spread, answer.error = found.error, answer.measured_at = found.measured_at, answer.differences = found.differences;
    answer.problem = c_string(found.problem), answer.device = c_string(found.device), answer.database = c_string(found.database);
    const std::string json = to_json(found.config);
    if (json.size() >= sizeof answer.json) return {StatusCode::internal, "the config's JSON has " + std::to_string(json.size()) + " bytes"};
    std::memcpy(answer.json, json.c_str(), json.size() + 1);
    const uint64_t size = config->struct_size;
    std::memcpy(config, &answer, static_cast<size_t>(answer.struct_size));
    config->struct_size = size;
    return {};
}

}  // namespace tilewright::c_api

const char* tilewright_last_error(void) { return tilewright::c_api::last_error.c_str(); }
