// AMD, appending: a block takes a run of rows.
#pragma once
#include "amd.h"
#include "append_piece.h"

namespace tilewright::kernel {

template <class Config_>
struct AmdAppend : AppendPiece<Config_> {
    using Config = Config_;
    struct Arguments {
        AppendParameters parameters;
    };
    static constexpr int threads = append_threads, lanes_of_block = threads, shared_bytes = 16;
    static TILEWRIGHT_DEVICE int lane_of_block() { return amd::thread(); }
    template <class Piece>
    static TILEWRIGHT_DEVICE void copy(Piece* to, const Piece* from) {
        if constexpr (sizeof(Piece) == 16) amd::store_global(to, amd::load_global<amd::short8>(from));
        else if constexpr (sizeof(Piece) == 4) amd::store_global(to, amd::load_global<unsigned>(from));
        else amd::store_global(to, amd::load_global<unsigned short>(from));
    }
    static TILEWRIGHT_DEVICE void keep_least(unsigned* word, unsigned x) { __atomic_fetch_min(word, x, __ATOMIC_RELAXED); }
    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_block(const Arguments&, Body&& body) { body(__builtin_amdgcn_workgroup_id_x()); }
};

}  // namespace tilewright::kernel
