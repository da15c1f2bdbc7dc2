-- Version 3. Decode problems say whether keys lie in pages, and how their lengths are distributed.
ALTER TABLE problem ADD COLUMN page_size INTEGER NOT NULL DEFAULT 0;     -- keys; 0: not in pages
ALTER TABLE problem ADD COLUMN shortest_kv INTEGER NOT NULL DEFAULT -1;  -- log-uniform from here to seq_kv; -1: all have seq_kv
ALTER TABLE problem ADD COLUMN length_seed INTEGER NOT NULL DEFAULT 0;
