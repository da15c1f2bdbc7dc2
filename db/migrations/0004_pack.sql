-- Version 4. What `tilewright pack` makes for machines without a compiler.

-- One row in a file that was made by it, none in any other.
CREATE TABLE pack(
    library   TEXT NOT NULL,  -- version of the library whose kernels these are
    hash_list TEXT NOT NULL,  -- SHA-1 over the keys and hashes of all rows of `code`, in the order of the keys
    made_at   INTEGER NOT NULL
) STRICT;

CREATE TABLE code(
    key   TEXT PRIMARY KEY,  -- SHA-1 of arch, entry point and the kernel's text
    arch  TEXT NOT NULL,
    hash  TEXT NOT NULL,     -- SHA-1 of the bytes
    bytes BLOB NOT NULL      -- code object, as the backend loads it
) STRICT;
