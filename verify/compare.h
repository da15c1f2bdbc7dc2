// The acceptance rule: a result may be at most twice as far from the reference as a straightforward low-precision one.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace tilewright {

struct Comparison {
    bool passed = true;
    double error = 0;           // max |x - r|
    double naive_error = 0;     // max |x_naive - r|
    double bound = 0;           // 2 * naive_error + 1e-6 * max(max |r|, terms)
    double relative_error = 0;  // ||x - r|| / ||r||; 0 where both are 0
    int64_t worst = -1;         // index of the largest error, or of the first value that is NaN or infinite on one side only
    std::string failure;        // one sentence with the values and the bound; empty if passed
};

// The three lists are of one length. Where the reference is NaN or infinite the result must be the same and the distance
// does not count; elsewhere it must be finite. `what` names the tensor in the sentence. Where larger terms cancel in a result, their size
// `terms` takes the place of max |r|.
Comparison compare(std::span<const double> result, std::span<const double> reference, std::span<const double> naive, const std::string& what,
                   double terms = 0);

}  // namespace tilewright
