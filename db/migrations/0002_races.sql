-- Version 2. Finalists are measured in turns, so that drift of the clocks cancels: what such a race found counts more than times
-- that were taken alone, minutes apart.
ALTER TABLE measurement ADD COLUMN race INTEGER NOT NULL DEFAULT 0;   -- when it began, seconds since 1970; 0: measured alone
ALTER TABLE measurement ADD COLUMN place INTEGER NOT NULL DEFAULT 0;  -- 1: won that race; ties are settled there

DROP INDEX measurement_correct;
-- All that opening for lookups reads, so that the table itself is not touched.
CREATE INDEX measurement_correct ON measurement(problem, device, toolchain, race DESC, place, median_us, measured_at, config, p20_us,
                                                p80_us, error) WHERE outcome = 1;

DROP VIEW best;
-- The winners: of the newest toolchain's latest race if there was one, else its lowest median. Only ever computed.
CREATE VIEW best AS
SELECT measurement, problem, device, toolchain, config, median_us
FROM (SELECT m.id AS measurement, m.problem, m.device, m.toolchain, m.config, m.median_us,
             row_number() OVER (PARTITION BY m.problem, m.device
                                ORDER BY m.race DESC, m.place, m.median_us, m.measured_at, m.config, m.id) AS place
      FROM newest n JOIN measurement m ON m.problem = n.problem AND m.device = n.device AND m.toolchain = n.toolchain
      WHERE m.outcome = 1)
WHERE place = 1;
