// How far apart two problems of one kind are, for the question which config suits.
#pragma once
#include "tilewright/problem.h"

namespace tilewright::lookup {

// The sizes of a problem as they matter to a tile shape, each a base-2 logarithm.
struct Sizes {
    double seq_q = 0;
    double seq_kv = 0;
    double fullness = 0;  // blocks of work a unit, batch x heads x query tiles / units; from -6 (idle) to 5 (full)
    double group = 0;     // query heads a KV head
    double window = 0;    // extent of the mask's bounded sides
    double pages = 0;     // 1 if keys lie in pages: their rows are looked up, and little else changes
    double packed = 0;    // 1 if sequences lie one behind the other
    double spread = 0;    // batch x heads: breaks ties
};
Sizes sizes_of(const Problem& problem, int units);

// 0 if equal in all that matters, else about the number of doublings between them. Symmetric.
double distance(const Sizes& a, const Sizes& b);

// Bits of Difference for the problem's sizes.
unsigned differences(const Problem& a, const Problem& b);

}  // namespace tilewright::lookup
