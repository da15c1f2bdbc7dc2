// What makes a candidate: for the space's own files.
#pragma once
#include "model/space.h"

namespace tilewright {

// check(), and `constraint` is the last one looked at: of a rejected config, the one that rejects it. An operation's kernels are judged one after another.
Status judge(const Space& space, const Config& config, Constraint& constraint);

// Heads with keys of their own in the work order: packed sequences count as one batch.
int64_t heads_apart(const Problem& problem);

// On sm_90a: one of so many parts of the last-level cache, in KiB, up to a power of two, for most problems have heads of such sizes and in such numbers, and whole sections.
int section_kb_of(const Arch& arch, int parts);

// Whether a wave alone has no room for a long row and its share of keys and values: up to four share them, rows or not.
bool is_tight(const Problem& problem, const Arch& arch);

}  // namespace tilewright
