// Tables' columns to and from structs.
#include "db/rows.h"

#include <cmath>
#include <cstdio>

namespace tilewright::rows {

const char insert_problem[] =
    "INSERT INTO problem(text, operation, dtype, batch, heads_q, heads_kv, seq_q, seq_kv, head_dim, head_dim_v, alignment,"
    " window_left, window_right, softcap, bias, alibi, sink, page_size, shortest_kv, length_seed, deterministic, packed, shortest_q) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING";

const char insert_measurement[] =
    "INSERT INTO measurement(problem, device, toolchain, config, outcome, median_us, p20_us, p80_us, samples, error, clock_mhz,"
    " memory_clock_mhz, temperature_c, energy_j, exclusive, race, place, driver, host, measured_at, note) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

#define TILEWRIGHT_PROBLEM_COLUMNS                                                                                           \
    "p.operation, p.dtype, p.batch, p.heads_q, p.heads_kv, p.seq_q, p.seq_kv, p.head_dim, p.head_dim_v, p.alignment,"         \
    " p.window_left, p.window_right, p.softcap, p.bias, p.alibi, p.sink, p.page_size,"                         \
    " p.shortest_kv, p.length_seed, p.deterministic, p.packed, p.shortest_q,"

const char select_problems[] = "SELECT " TILEWRIGHT_PROBLEM_COLUMNS " p.id, p.text FROM problem p";

const char select_rows[] =
    "SELECT " TILEWRIGHT_PROBLEM_COLUMNS                                                                             // 0-21
    " d.backend, d.arch, d.family, d.name, d.units,"                                                                 // 22-26
    " t.compiler, t.flags, t.kernel_source,"                                                                         // 27-29
    " m.id, c.json, m.outcome, m.median_us, m.p20_us, m.p80_us, m.samples, m.error, m.clock_mhz, m.memory_clock_mhz,"
    " m.temperature_c, m.energy_j, m.exclusive, m.race, m.place, m.driver, m.host, m.measured_at, m.note,"           // 30-48
    " m.toolchain = (SELECT n.toolchain FROM newest n WHERE n.problem = m.problem AND n.device = m.device), p.text"  // 49-50
    " FROM measurement m JOIN problem p ON p.id = m.problem JOIN device d ON d.id = m.device"
    " JOIN toolchain t ON t.id = m.toolchain JOIN config c ON c.id = m.config ";

void bind_problem(sqlite::Statement& statement, const Problem& problem) {
    for (const int64_t value :
         {static_cast<int64_t>(problem.operation), static_cast<int64_t>(problem.dtype), problem.batch, problem.heads_q,
          problem.heads_kv, problem.seq_q, problem.seq_kv, problem.head_dim, problem.head_dim_v,
          static_cast<int64_t>(problem.alignment), problem.window_left, problem.window_right, int64_t{problem.softcap},
          int64_t{problem.bias}, int64_t{problem.alibi}, int64_t{problem.sink}, problem.page_size, problem.shortest_kv, problem.length_seed,
          int64_t{problem.deterministic}, int64_t{problem.packed}, problem.shortest_q}) {
        statement.bind(value);
    }
}

Result<Problem> read_problem(const sqlite::Statement& statement) {
    Problem problem;
    problem.operation = static_cast<Operation>(statement.integer(0));
    problem.dtype = static_cast<DType>(statement.integer(1));
    int column = 2;
    for (int64_t Problem::* field : {&Problem::batch, &Problem::heads_q, &Problem::heads_kv, &Problem::seq_q, &Problem::seq_kv,
                                     &Problem::head_dim, &Problem::head_dim_v}) {
        problem.*field = statement.integer(column++);
    }
    problem.alignment = static_cast<Alignment>(statement.integer(column++));
    problem.window_left = statement.integer(column++);
    problem.window_right = statement.integer(column++);
    for (bool Problem::* field : {&Problem::softcap, &Problem::bias, &Problem::alibi, &Problem::sink}) {
        problem.*field = statement.integer(column++) != 0;
    }
    for (int64_t Problem::* field : {&Problem::page_size, &Problem::shortest_kv, &Problem::length_seed}) problem.*field = statement.integer(column++);
    problem.deterministic = statement.integer(column++) != 0;
    problem.packed = statement.integer(column++) != 0;
    problem.shortest_q = statement.integer(column++);
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    return problem;
}

void bind_measurement(sqlite::Statement& statement, const Measurement& measurement) {
    statement.bind(static_cast<int64_t>(measurement.outcome))
        .bind(measurement.median_us)
        .bind(measurement.p20_us)
        .bind(measurement.p80_us)
        .bind(static_cast<int64_t>(measurement.samples))
        .bind(measurement.error)
        .bind(measurement.clock_mhz)
        .bind(measurement.memory_clock_mhz)
        .bind(measurement.temperature_c)
        .bind(measurement.energy_j)
        .bind(static_cast<int64_t>(measurement.exclusive))
        .bind(measurement.race)
        .bind(static_cast<int64_t>(measurement.place))
        .bind(measurement.driver)
        .bind(measurement.host)
        .bind(measurement.measured_at)
        .bind(measurement.note);
}

Result<Measurement> read_measurement(const sqlite::Statement& statement, int first) {
    Measurement m;
    int column = first;
    m.id = statement.integer(column++);
    TILEWRIGHT_ASSIGN_OR_RETURN(m.config, parse_config(statement.text(column++)));
    m.outcome = static_cast<Outcome>(statement.integer(column++));
    m.median_us = statement.real(column++);
    m.p20_us = statement.real(column++);
    m.p80_us = statement.real(column++);
    m.samples = static_cast<int>(statement.integer(column++));
    m.error = statement.real(column++);
    m.clock_mhz = statement.real(column++);
    m.memory_clock_mhz = statement.real(column++);
    m.temperature_c = statement.real(column++);
    m.energy_j = statement.real(column++);
    m.exclusive = static_cast<int>(statement.integer(column++));
    m.race = statement.integer(column++);
    m.place = static_cast<int>(statement.integer(column++));
    m.driver = statement.text(column++);
    m.host = statement.text(column++);
    m.measured_at = statement.integer(column++);
    m.note = statement.text(column++);
    return m;
}

Result<MeasurementRow> read_row(const sqlite::Statement& statement) {
    MeasurementRow row;
    Result<Problem> problem = read_problem(statement);
    if (!problem.ok()) return invalid_argument("problem " + std::string(statement.text(50)) + ": " + problem.status().message());
    row.problem = *problem;
    row.device = {std::string(statement.text(22)), std::string(statement.text(23)), std::string(statement.text(24)),
                  std::string(statement.text(25)), static_cast<int>(statement.integer(26))};
    row.toolchain = {std::string(statement.text(27)), std::string(statement.text(28)), std::string(statement.text(29))};
    TILEWRIGHT_ASSIGN_OR_RETURN(row.measurement, read_measurement(statement, first_measurement_column));
    row.newest_toolchain = statement.integer(49) != 0;
    return row;
}

std::string short_hash(std::string_view text) {
    uint64_t hash = 14695981039346656037ULL;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash));
    return hex;
}

}  // namespace tilewright::rows

namespace tilewright {

Status check_measurement(const Measurement& m) {
    constexpr double hour_us = 3.6e9;
    if (static_cast<int>(m.outcome) < 1 || static_cast<int>(m.outcome) > static_cast<int>(Outcome::imported)) {
        return invalid_argument("outcome " + std::to_string(static_cast<int>(m.outcome)) + " is not one of 1 .. 8");
    }
    for (const double time : {m.median_us, m.p20_us, m.p80_us}) {
        if (!(time >= 0 && time <= hour_us)) return invalid_argument("a time of " + std::to_string(time) + " us is not within 0 .. 3.6e9");
    }
    if (m.p20_us > m.p80_us) return invalid_argument("p20 " + std::to_string(m.p20_us) + " us is above p80 " + std::to_string(m.p80_us) + " us");
    if (m.outcome == Outcome::correct && !(m.median_us > 0)) return invalid_argument("a correct candidate has a median above 0 us");
    if (!(m.energy_j >= 0 && m.energy_j <= 1e9)) return invalid_argument("an energy of " + std::to_string(m.energy_j) + " J is not within 0 .. 1e9");
    if (!std::isfinite(m.error)) return invalid_argument("an error against the reference is a finite number");
    if (m.place < 0 || (m.race == 0) != (m.place == 0)) return invalid_argument("place " + std::to_string(m.place) + " does not go with race " + std::to_string(m.race));
    if (m.samples < 0) return invalid_argument("the number of samples, " + std::to_string(m.samples) + ", is negative");
    return {};
}

}  // namespace tilewright
