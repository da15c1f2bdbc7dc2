-- Version 7. Problems of packed sequences, and how the numbers of their queries are distributed.
ALTER TABLE problem ADD COLUMN packed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE problem ADD COLUMN shortest_q INTEGER NOT NULL DEFAULT -1;  -- log-uniform from here to seq_q; -1: all have seq_q
