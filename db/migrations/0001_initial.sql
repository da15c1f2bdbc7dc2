-- Version 1. A file that holds this schema is changed by later migrations only; this text is frozen.

-- Devices that are the same for tuning share a row.
CREATE TABLE device(
    id      INTEGER PRIMARY KEY,
    backend TEXT NOT NULL,     -- cpu, amd, nvidia
    arch    TEXT NOT NULL,     -- gfx942, sm_90a, cpu
    family  TEXT NOT NULL,
    name    TEXT NOT NULL,     -- as the vendor calls it
    units   INTEGER NOT NULL,  -- multiprocessors, compute units, threads
    UNIQUE(backend, arch, family, name, units)
) STRICT;

-- What turned a config into machine code.
CREATE TABLE toolchain(
    id            INTEGER PRIMARY KEY,
    compiler      TEXT NOT NULL,  -- name and version
    flags         TEXT NOT NULL,
    kernel_source TEXT NOT NULL,  -- hash of the kernels' text
    UNIQUE(compiler, flags, kernel_source)
) STRICT;

-- The columns say what the text says; `db check` compares them.
CREATE TABLE problem(
    id           INTEGER PRIMARY KEY,
    text         TEXT NOT NULL UNIQUE,  -- forward:b4,hq32,hkv8,sq4096,d128,bf16,causal
    operation    INTEGER NOT NULL,      -- 1 forward, 2 backward, 3 decode
    dtype        INTEGER NOT NULL,      -- 1 fp32, 2 fp16, 3 bf16
    batch        INTEGER NOT NULL,
    heads_q      INTEGER NOT NULL,
    heads_kv     INTEGER NOT NULL,
    seq_q        INTEGER NOT NULL,
    seq_kv       INTEGER NOT NULL,
    head_dim     INTEGER NOT NULL,
    head_dim_v   INTEGER NOT NULL,
    alignment    INTEGER NOT NULL,      -- 1 bottom right, 2 top left
    window_left  INTEGER NOT NULL,      -- -1: unbounded
    window_right INTEGER NOT NULL,
    softcap      INTEGER NOT NULL,      -- 0 or 1, as the next three
    bias         INTEGER NOT NULL,
    alibi        INTEGER NOT NULL,
    sink         INTEGER NOT NULL
) STRICT;

CREATE TABLE config(
    id   INTEGER PRIMARY KEY,
    json TEXT NOT NULL UNIQUE,  -- canonical: every field by name in a fixed order
    hash TEXT NOT NULL          -- 16 hex digits of FNV-1a over json: a short name for people
) STRICT;

-- One candidate tried once.
CREATE TABLE measurement(
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    problem          INTEGER NOT NULL REFERENCES problem(id),
    device           INTEGER NOT NULL REFERENCES device(id),
    toolchain        INTEGER NOT NULL REFERENCES toolchain(id),
    config           INTEGER NOT NULL REFERENCES config(id),
    outcome          INTEGER NOT NULL CHECK(outcome >= 1),  -- 1 correct, 2 constraints, 3 compile, 4 runtime, 5 correctness,
                                                            -- 6 timeout, 7 predicted, 8 imported
    median_us        REAL NOT NULL CHECK(median_us >= 0),   -- 0 unless timed or predicted
    p20_us           REAL NOT NULL,
    p80_us           REAL NOT NULL,
    samples          INTEGER NOT NULL,
    error            REAL NOT NULL,     -- against the reference; -1: not checked
    clock_mhz        REAL NOT NULL,     -- 0: not known, as the next two
    memory_clock_mhz REAL NOT NULL,
    temperature_c    REAL NOT NULL,
    exclusive        INTEGER NOT NULL,  -- 1 yes, 0 no, -1 not known
    driver           TEXT NOT NULL,
    host             TEXT NOT NULL,
    measured_at      INTEGER NOT NULL,  -- seconds since 1970, UTC
    note             TEXT NOT NULL
) STRICT;
CREATE INDEX measurement_by_key ON measurement(problem, device, toolchain);
-- All that opening for lookups reads, so that the table itself is not touched.
CREATE INDEX measurement_correct ON measurement(problem, device, toolchain, median_us, measured_at, config, p20_us, p80_us, error)
    WHERE outcome = 1;

-- What lookups asked for and did not find; bounded by the writer.
CREATE TABLE miss(
    problem       TEXT NOT NULL,  -- its text: most misses never become a problem row
    device        INTEGER NOT NULL REFERENCES device(id),
    count         INTEGER NOT NULL,
    last_asked_at INTEGER NOT NULL,
    PRIMARY KEY(problem, device)
) STRICT, WITHOUT ROWID;

-- The toolchain of the latest correct measurement of each problem on each device: times of another are not comparable.
CREATE VIEW newest AS
SELECT problem, device, toolchain, measured_at
FROM (SELECT problem, device, toolchain, max(measured_at) AS measured_at,
             row_number() OVER (PARTITION BY problem, device ORDER BY max(measured_at) DESC, toolchain DESC) AS place
      FROM measurement WHERE outcome = 1 GROUP BY problem, device, toolchain)
WHERE place = 1;

-- The winners: the lowest median of the newest toolchain. Only ever computed.
CREATE VIEW best AS
SELECT measurement, problem, device, toolchain, config, median_us
FROM (SELECT m.id AS measurement, m.problem, m.device, m.toolchain, m.config, m.median_us,
             row_number() OVER (PARTITION BY m.problem, m.device ORDER BY m.median_us, m.measured_at, m.config, m.id) AS place
      FROM newest n JOIN measurement m ON m.problem = n.problem AND m.device = n.device AND m.toolchain = n.toolchain
      WHERE m.outcome = 1)
WHERE place = 1;
