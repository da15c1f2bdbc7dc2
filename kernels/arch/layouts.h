// Fragment layouts of the matrix instructions, as plain data: what each bit of a lane's number, and of an element's number
// within the lane, stands for. tile/layout.h derives everything else; tests/isa holds the same facts from the manuals.
#pragma once

namespace tilewright::kernel {

struct Place {
    int row, column;
};

// Element e of lane l lies at the sum of lane_bits[b] over the set bits b of l and element_bits[b] over those of e.
// Elements are counted one by one, also where two share a register. A lane bit at (0, 0) tells copies apart.
struct Fragment {
    int rows, columns, lanes, elements;
    Place lane_bits[7], element_bits[4];
};

// Left (m x k) holds queries or probabilities, the right operand (k x n) keys or values, Accumulator m x n their product.
// AMD's instructions are issued with operands exchanged, A = right and B = left, which computes the transposed product: a lane
// then holds one row, and the accumulator has the lanes of a left operand.
namespace layouts {

struct MmaSync16x8x16 {  // mma.sync.m16n8k16, sm_80 and later
    static constexpr int m = 16, n = 8, k = 16;
    struct Left {
        static constexpr Fragment table{16, 16, 32, 8, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, {{0, 1}, {8, 0}, {0, 8}}};
    };
    struct Right {
        static constexpr Fragment table{16, 8, 32, 4, {{2, 0}, {4, 0}, {0, 1}, {0, 2}, {0, 4}}, {{1, 0}, {8, 0}}};
    };
    struct Accumulator {
        static constexpr Fragment table{16, 8, 32, 4, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, {{0, 1}, {8, 0}}};
    };
};

// Eight columns of wgmma.m64nNk16 (sm_90a); the others follow, four elements further each. Its right operand is in shared memory.
struct Wgmma64x8x16 {
    static constexpr int m = 64, n = 8, k = 16;
    struct Left {
        static constexpr Fragment table{
            64, 16, 128, 8, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}, {16, 0}, {32, 0}}, {{0, 1}, {8, 0}, {0, 8}}};
    };
    struct Accumulator {
        static constexpr Fragment table{64, 8, 128, 4, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}, {16, 0}, {32, 0}}, {{0, 1}, {8, 0}}};
    };
};

struct Mfma16x16x16 {  // v_mfma_f32_16x16x16_{f16,bf16}, gfx90a and later
    static constexpr int m = 16, n = 16, k = 16;
    struct Left {
        static constexpr Fragment table{16, 16, 64, 4, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 4}, {0, 8}}, {{0, 1}, {0, 2}}};
    };
    struct Right {
        static constexpr Fragment table{16, 16, 64, 4, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {4, 0}, {8, 0}}, {{1, 0}, {2, 0}}};
    };
    struct Accumulator {
        static constexpr Fragment table{16, 16, 64, 4, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 4}, {0, 8}}, {{0, 1}, {0, 2}}};
    };
};

struct Mfma32x32x8 {  // v_mfma_f32_32x32x8_{f16,bf16}, gfx90a and later
    static constexpr int m = 32, n = 32, k = 8;
    struct Left {
        static constexpr Fragment table{32, 8, 64, 4, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {0, 4}}, {{0, 1}, {0, 2}}};
    };
    struct Right {
        static constexpr Fragment table{8, 32, 64, 4, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {4, 0}}, {{1, 0}, {2, 0}}};
    };
    struct Accumulator {
        static constexpr Fragment table{
            32, 32, 64, 16, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {0, 4}}, {{0, 1}, {0, 2}, {0, 8}, {0, 16}}};
    };
};

struct Mfma16x16x32 {  // v_mfma_f32_16x16x32_{f16,bf16}, gfx950
    static constexpr int m = 16, n = 16, k = 32;
    struct Left {
        static constexpr Fragment table{16, 32, 64, 8, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 8}, {0, 16}}, {{0, 1}, {0, 2}, {0, 4}}};
    };
    struct Right {
        static constexpr Fragment table{32, 16, 64, 8, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {8, 0}, {16, 0}}, {{1, 0}, {2, 0}, {4, 0}}};
    };
    using Accumulator = Mfma16x16x16::Accumulator;
};

struct Mfma32x32x16 {  // v_mfma_f32_32x32x16_{f16,bf16}, gfx950
    static constexpr int m = 32, n = 32, k = 16;
    struct Left {
        static constexpr Fragment table{32, 16, 64, 8, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {0, 8}}, {{0, 1}, {0, 2}, {0, 4}}};
    };
    struct Right {
        static constexpr Fragment table{16, 32, 64, 8, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {8, 0}}, {{1, 0}, {2, 0}, {4, 0}}};
    };
    using Accumulator = Mfma32x32x8::Accumulator;
};

struct WmmaGfx11 {  // v_wmma_f32_16x16x16_{f16,bf16}, wave32; lanes 16 to 31 hold the operands once more
    static constexpr int m = 16, n = 16, k = 16;
    struct Left {
        static constexpr Fragment table{16, 16, 32, 16, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 0}}, {{0, 1}, {0, 2}, {0, 4}, {0, 8}}};
    };
    struct Right {
        static constexpr Fragment table{16, 16, 32, 16, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 0}}, {{1, 0}, {2, 0}, {4, 0}, {8, 0}}};
    };
    struct Accumulator {
        static constexpr Fragment table{16, 16, 32, 8, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 1}}, {{0, 2}, {0, 4}, {0, 8}}};
    };
};

struct WmmaGfx12 {  // v_wmma_f32_16x16x16_{f16,bf16}, wave32
    static constexpr int m = 16, n = 16, k = 16;
    struct Left {
        static constexpr Fragment table{16, 16, 32, 8, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 8}}, {{0, 1}, {0, 2}, {0, 4}}};
    };
    struct Right {
        static constexpr Fragment table{16, 16, 32, 8, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {8, 0}}, {{1, 0}, {2, 0}, {4, 0}}};
    };
    struct Accumulator {
        static constexpr Fragment table{16, 16, 32, 8, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 8}}, {{0, 1}, {0, 2}, {0, 4}}};
    };
};

}  // namespace layouts
}  // namespace tilewright::kernel
