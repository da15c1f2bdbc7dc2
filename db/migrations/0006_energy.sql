-- Version 6. Measurements may know what a launch costs in energy.
ALTER TABLE measurement ADD COLUMN energy_j REAL NOT NULL DEFAULT 0 CHECK(energy_j >= 0);  -- joules of one launch; 0: not known
