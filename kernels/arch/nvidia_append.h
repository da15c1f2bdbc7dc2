// NVIDIA, appending: a block takes a run of rows.
#pragma once
#include "append_piece.h"

namespace tilewright::kernel {

template <class Config_>
struct NvidiaAppend : AppendPiece<Config_> {
    using Config = Config_;
    struct Arguments {
        AppendParameters parameters;
    };
    static constexpr int threads = append_threads, lanes_of_block = threads;
    static TILEWRIGHT_DEVICE int lane_of_block() { return threadIdx.x; }
    static TILEWRIGHT_DEVICE void copy(SixteenBytes* to, const SixteenBytes* from) { *(uint4*)to = *(const uint4*)from; }
    template <class Piece>
    static TILEWRIGHT_DEVICE void copy(Piece* to, const Piece* from) { *to = *from; }
    static TILEWRIGHT_DEVICE void keep_least(unsigned* word, unsigned x) { atomicMin(word, x); }
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_block(const Arguments&, Body&& body) { body(blockIdx.x); }
};

}  // namespace tilewright::kernel
