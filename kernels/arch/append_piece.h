// What is copied at once when rows are appended.
#pragma once
#include "../parameters.h"

namespace tilewright::kernel {

struct alignas(16) SixteenBytes {
    unsigned words[4];
};
template <bool aligned, class Element> struct PieceOf { using type = Element; };
template <class Element> struct PieceOf<true, Element> { using type = SixteenBytes; };

template <class Config>
struct AppendPiece {
    using Piece = typename PieceOf<Config::aligned, typename Config::Element>::type;
};

}  // namespace tilewright::kernel
