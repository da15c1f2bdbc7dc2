// The CPU, appending: threads draw runs of rows.
#pragma once
#include "append_piece.h"

namespace tilewright::kernel {

template <class Config_>
struct CpuAppend : AppendPiece<Config_> {
    using Config = Config_;
    struct Arguments {
        AppendParameters parameters;
    };
    static constexpr int lanes_of_block = 1;
    static TILEWRIGHT_DEVICE int lane_of_block() { return 0; }
    template <class Piece>
    static TILEWRIGHT_DEVICE void copy(Piece* to, const Piece* from) { *to = *from; }
    static TILEWRIGHT_DEVICE void keep_least(unsigned* word, unsigned x) {
        for (unsigned now = __atomic_load_n(word, __ATOMIC_RELAXED); x < now && !__atomic_compare_exchange_n(word, &now, x, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);) {}
    }
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_block(const Arguments& arguments, Body&& body) {
        const AppendParameters& p = arguments.parameters;
        for (int i; (i = __atomic_fetch_add(p.dealt, 1u, __ATOMIC_RELAXED)) < append_blocks(p);) body(i);
    }
};

}  // namespace tilewright::kernel
