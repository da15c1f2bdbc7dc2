// What RDNA's waves of 32 lanes share.
#pragma once
#include "amd_forward.h"

namespace tilewright::kernel::amd {

struct Wave32 {
    using Vector = float8;
    static constexpr int products = 1;
    static TILEWRIGHT_DEVICE unsigned from_other_half(unsigned x) {
        return __builtin_amdgcn_permlanex16(x, x, 0x76543210, 0xfedcba98, false, false);
    }
    template <int mask>
    static TILEWRIGHT_DEVICE float exchange(float x) {
        static_assert(mask == 16);
        return __builtin_bit_cast(float, from_other_half(__builtin_bit_cast(unsigned, x)));
    }
    static TILEWRIGHT_DEVICE bool any(bool x) { return __builtin_amdgcn_ballot_w32(x) != 0; }
};

}  // namespace tilewright::kernel::amd
