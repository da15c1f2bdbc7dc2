// The share of a search space that a test compiles.
#pragma once
#include <algorithm>
#include <cstdlib>

namespace tilewright {

struct CandidateShare {
    size_t first, stride;
};

// Every usual-th candidate, unless TILEWRIGHT_CANDIDATE_STRIDE says another share; TILEWRIGHT_CANDIDATE_OFFSET is where it begins, so that strides
// with offsets 0, 1, 2, ... take the whole space in parts.
inline CandidateShare candidate_share(size_t usual) {
    const char* stride_text = getenv("TILEWRIGHT_CANDIDATE_STRIDE");
    const char* first_text = getenv("TILEWRIGHT_CANDIDATE_OFFSET");
    const size_t stride = stride_text ? size_t(std::max(1, atoi(stride_text))) : usual;
    return {first_text ? size_t(std::max(0, atoi(first_text))) : stride / 2, stride};
}

}  // namespace tilewright
