// Row maxima and row sums of a stream of score tiles (Milakov & Gimelshein 2018; Dao et al. 2022, algorithm 1).
#pragma once
#include "tile/element.h"

namespace tilewright::kernel {

// Each lane holds `rows` rows; several lanes may share a row, each summing its own columns until total() joins them.
// A Value is what a lane holds of one row and column: a float, or on the CPU a vector of neighbouring columns.
//
// Hidden scores are -infinity and nothing else is: there is no finite sentinel. A row that has seen nothing has maximum
// -infinity and is referred to 0 instead, so that no difference of infinities arises. NaN never enters a maximum, but it
// does enter the sum, so it reaches the output and the log-sum.
template <class Arch, int rows>
struct OnlineSoftmax {
    using Value = typename Arch::Value;
    static constexpr int slack = Arch::Config::slack;
    // Where |maximum * scale| is larger than this, rounding the product once here and once in the fused multiply-add of the
    // exponent would differ by so much that the largest probability is no longer 1 after rounding to 16 bits.
    static constexpr float largest_offset = 0x1p12f;

    float scale;  // of the scores, times log2(e): 2^x is cheaper than e^x; positive
    float maximum[rows];
    Value sum[rows];
    float correction[rows];  // what outputs so far are to be multiplied by, where update() says so
    bool distant = false;    // some maximum is beyond largest_offset

    TILEWRIGHT_DEVICE explicit OnlineSoftmax(float scale_log2) : scale(scale_log2) {
        TILEWRIGHT_UNROLL for (int r = 0; r < rows; ++r) maximum[r] = -infinity, sum[r] = Value{};
    }

    // Turns scores into probabilities relative to `maximum`; true if earlier outputs are to be corrected.
    // The maximum may lag behind by `slack` (a power of two): any reference serves that avoids overflow. All that is rare
    // hangs on one vote: a maximum to be moved, a row that has seen nothing (its differences are NaN), distant maxima.
    template <class Scores>
    TILEWRIGHT_DEVICE bool update(Scores& scores) {
        bool moves = distant;
        float largest[rows], offset[rows];
        TILEWRIGHT_UNROLL for (int r = 0; r < rows; ++r) {
            Value lane_largest = Arch::broadcast(maximum[r]);
            TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c) lane_largest = Arch::max(lane_largest, scores.at(r, c));
            if constexpr (Arch::votes_by_lane) largest[r] = lane_largest;  // the vote asks the other lanes of the row too
            else largest[r] = Arch::row_max(lane_largest);
            offset[r] = maximum[r] * scale;
            moves |= must_move(r, largest[r]);
        }
        moves = Arch::any(moves);
        if (moves) refer_to(largest, offset, scores);
        TILEWRIGHT_UNROLL for (int r = 0; r < rows; ++r) {
            float shift = offset[r] - Arch::probability_lift;
            Value partial{};
            TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c) {
                Value probability = Arch::exp2(scores.at(r, c) * scale - shift);
                scores.at(r, c) = probability;
                partial += probability;
            }
            sum[r] += partial;
        }
        return moves;
    }

    TILEWRIGHT_DEVICE float total(int r) const { return Arch::row_sum(sum[r]); }

private:
    static TILEWRIGHT_DEVICE float reference(float maximum) { return maximum == -infinity ? 0.0f : maximum; }

    TILEWRIGHT_DEVICE bool must_move(int r, float largest) const { return slack == 0 || !((largest - maximum[r]) * scale <= slack); }

    // Moves the maxima that must, and no others: what becomes of a row does not depend on its neighbours. Where
    // offset = maximum * scale would overflow or be too coarse, the maximum is subtracted before scaling instead.
    template <class Scores>
    TILEWRIGHT_DEVICE void refer_to(float (&largest)[rows], float (&offset)[rows], Scores& scores) {
        TILEWRIGHT_UNROLL for (int r = 0; r < rows; ++r) {
            if constexpr (Arch::votes_by_lane) largest[r] = Arch::row_max(largest[r]);
            float next = must_move(r, largest[r]) ? largest[r] : maximum[r], origin = reference(next);
            correction[r] = Arch::exp2((maximum[r] - origin) * scale);
            maximum[r] = next;
            sum[r] = sum[r] * correction[r];
            offset[r] = origin * scale;
            if (offset[r] < largest_offset && offset[r] > -largest_offset) continue;
            TILEWRIGHT_UNROLL for (int c = 0; c < Scores::columns; ++c) scores.at(r, c) = scores.at(r, c) - origin;
            offset[r] = 0, distant = true;
        }
    }
};

// Natural logarithm of the sum of exp(scores * natural_scale), of a row's maximum and total; `natural_scale` is OnlineSoftmax::scale /
// log2(e), before rounding.
template <class Arch>
TILEWRIGHT_DEVICE float log_sum(float maximum, float total, float natural_scale) {
    return maximum * natural_scale + (Arch::log2(total) - Arch::probability_lift) * log_of_2;
}

}  // namespace tilewright::kernel
