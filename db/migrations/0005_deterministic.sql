-- Version 5. Backward problems say whether gradients must be bitwise repeatable; lookups find predictions beside measurements.
ALTER TABLE problem ADD COLUMN deterministic INTEGER NOT NULL DEFAULT 0;  -- 0 or 1

DROP INDEX measurement_correct;
-- All that opening for lookups reads, so that the table itself is not touched. `outcome` is there for SQLite, which otherwise finds each row's
-- place in the table, although it needs nothing of it.
CREATE INDEX measurement_correct ON measurement(problem, device, toolchain, race DESC, place, median_us, measured_at, config, p20_us,
                                                p80_us, error, outcome) WHERE outcome = 1;
CREATE INDEX measurement_predicted ON measurement(problem, device, toolchain, median_us, measured_at, config, outcome) WHERE outcome = 7;
