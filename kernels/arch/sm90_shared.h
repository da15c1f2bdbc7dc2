// NVIDIA sm_90a: where the forward's tiles and barriers are in shared memory, and how the place of a tile of queries is handed over there.
#pragma once
#include "hopper.h"

namespace tilewright::kernel {
namespace hopper {

// A buffer is full when its bytes have come, and free when every warp has released it.
template <class Place, int workers, int query_stages, int stages, int query_bytes, int key_bytes, int value_bytes>
struct Shared {
    static constexpr int tile_bytes = query_stages * query_bytes + stages * (key_bytes + value_bytes);
    unsigned base;
    TILEWRIGHT_DEVICE explicit Shared(char* shared) : base((ptx::shared_address(shared) + sm90_alignment - 1) & ~(sm90_alignment - 1u)) {}
    TILEWRIGHT_DEVICE unsigned query(int stage) const { return base + stage * query_bytes; }
    TILEWRIGHT_DEVICE unsigned keys(int stage) const { return base + query_stages * query_bytes + stage * key_bytes; }
    TILEWRIGHT_DEVICE unsigned values(int stage) const { return base + query_stages * query_bytes + stages * key_bytes + stage * value_bytes; }
    // A tile's place comes with its queries.
    TILEWRIGHT_DEVICE unsigned place(int stage) const { return base + tile_bytes + (int)sizeof(Place) * stage; }
    TILEWRIGHT_DEVICE unsigned stored_place(int warp) const { return place(query_stages + warp); }
    TILEWRIGHT_DEVICE unsigned barrier(int i) const { return place(query_stages + 4 * workers) + 8 * i; }
    TILEWRIGHT_DEVICE unsigned query_full(int stage) const { return barrier(stage); }
    TILEWRIGHT_DEVICE unsigned query_free(int stage) const { return barrier(query_stages + stage); }
    TILEWRIGHT_DEVICE unsigned keys_full(int stage) const { return barrier(2 * query_stages + stage); }
    TILEWRIGHT_DEVICE unsigned keys_free(int stage) const { return barrier(2 * query_stages + stages + stage); }
    TILEWRIGHT_DEVICE unsigned values_full(int stage) const { return barrier(2 * query_stages + 2 * stages + stage); }
    TILEWRIGHT_DEVICE unsigned values_free(int stage) const { return barrier(2 * query_stages + 3 * stages + stage); }
    // Values to be cleaned before they count as full: they have landed, and are those of which stage.
    TILEWRIGHT_DEVICE unsigned landed(int request) const { return barrier(2 * query_stages + 4 * stages + request); }
    TILEWRIGHT_DEVICE unsigned landed_stage(int request) const { return barrier(2 * query_stages + 5 * stages + request); }
    TILEWRIGHT_DEVICE unsigned landed_free(int request) const { return barrier(2 * query_stages + 6 * stages + request); }
    TILEWRIGHT_DEVICE unsigned place_free(int stage) const { return barrier(2 * query_stages + 7 * stages + 1 + stage); }
    TILEWRIGHT_DEVICE unsigned found_garbage() const { return barrier(2 * query_stages + 7 * stages); }
};

template <class Place>
struct PlaceWords {
    uint4 word[sizeof(Place) / 16];
};
template <class Place>
TILEWRIGHT_DEVICE void write_place(unsigned to, const Place& place) {
    auto words = __builtin_bit_cast(PlaceWords<Place>, place);
    TILEWRIGHT_UNROLL for (int i = 0; i < (int)sizeof(Place) / 16; ++i) ptx::store_shared(to + 16 * i, words.word[i]);
}
template <class Place>
TILEWRIGHT_DEVICE Place read_place(unsigned from) {
    PlaceWords<Place> words;
    TILEWRIGHT_UNROLL for (int i = 0; i < (int)sizeof(Place) / 16; ++i) words.word[i] = ptx::load_shared4(from + 16 * i);
    return __builtin_bit_cast(Place, words);
}

}  // namespace hopper
}  // namespace tilewright::kernel
