// Writes new keys and values behind the last of each sequence, in a dense cache or one in pages, and never past its end.
#pragma once
#include "tile/tile.h"

namespace tilewright::kernel {

// Rows [first, last) of a sequence's new ones into the cache, from place `begin` on. Returns whether every page exists.
template <class Arch, int columns>
TILEWRIGHT_DEVICE bool append_rows(const AppendParameters& p, const void* from, const Strides& strides, void* cache, const Strides& cache_strides, int sequence,
                                   int head, int begin, int first, int last) {
    using Config = typename Arch::Config;
    using Element = typename Config::Element;
    using Piece = typename Arch::Piece;  // 16 bytes of aligned rows, else an element
    constexpr int piece_columns = sizeof(Piece) / sizeof(Element), pieces = columns / piece_columns;
    bool exist = true;
    for (int i = Arch::lane_of_block(); i < (last - first) * pieces; i += Arch::lanes_of_block) {
        int row = first + i / pieces, column = i % pieces * piece_columns, batch = sequence, place = begin + row;
        if constexpr (Config::paged) {
            batch = p.block_table[sequence * p.table_stride + (place >> p.page_shift)], place &= (1 << p.page_shift) - 1;
            if (batch < 0 || batch >= p.pages) {
                exist = false;
                continue;
            }
        }
        Arch::copy((Piece*)(row_of((Element*)cache, cache_strides, batch, head, place) + column),
                   (const Piece*)(row_of((const Element*)from, strides, sequence, head, row) + column));
    }
    return exist;
}

template <class Arch>
TILEWRIGHT_DEVICE void append(const typename Arch::Arguments& arguments, char*) {
    using Config = typename Arch::Config;
    const AppendParameters& p = arguments.parameters;
    Arch::for_each_block(arguments, [&](int index) {
        int runs = append_runs(p.rows), first = index % runs * append_run, head = index / runs % p.heads_kv, sequence = index / runs / p.heads_kv;
        int begin = p.lengths[sequence], count = p.counts ? p.counts[sequence] : p.rows;
        bool fits = begin >= 0 && count >= 0 && count <= p.rows && begin <= p.capacity - count;
        if (fits) {
            int last = min_of(count, first + append_run);
            fits = append_rows<Arch, Config::head_dim>(p, p.key, p.key_strides, p.key_cache, p.key_cache_strides, sequence, head, begin, first, last) &&
                   append_rows<Arch, Config::head_dim_v>(p, p.value, p.value_strides, p.value_cache, p.value_cache_strides, sequence, head, begin, first, last);
        }
        if (!fits && p.status) Arch::keep_least(p.status, (unsigned)sequence);
    });
}

}  // namespace tilewright::kernel
