// Where the lanes of a wave read and write in LDS, asked of the headers themselves.
#include "amd_banks.h"

#include "amd_kernels.h"
#include "kernels/arch/cdna4.h"
#include "kernels/arch/rdna3.h"
#include "kernels/arch/rdna4.h"

namespace tilewright::emulated {
namespace {

using kernel::bf16;
using kernel::amd::short4;
using kernel::amd::short8;

// LDS whose every 16-byte piece says where it is.
struct Map {
    alignas(64) char memory[160 * 1024];
    Map() {
        for (int at = 0; at < int(sizeof memory); at += 16) std::memset(memory + at, 0, 16), std::memcpy(memory + at, &at, sizeof at);
    }
};

template <class Arch, int pieces, bool transposed>
void add_reads(std::vector<LdsAccess>& all, const std::string& what, const Map& map, int tiles, int steps) {
    for (int tile = 0; tile < tiles; ++tile)
        for (int k = 0; k < steps; ++k)
            for (int piece = 0; piece < Arch::held; ++piece) {
                LdsAccess access{what, 16, {}};
                for (block.current = 0; block.current < Arch::wave; ++block.current) {
                    typename Arch::Operand x = Arch::template operand<pieces, transposed>(map.memory, tile, k);
                    int at;
                    std::memcpy(&at, (const char*)&x + 16 * piece, sizeof at);
                    access.offset.push_back(at);
                }
                all.push_back(access);
            }
}

// The first wave's stores of keys, straight, and of values, transposed.
template <class Arch>
void add_writes(std::vector<LdsAccess>& all, const std::string& what) {
    using P = typename Arch::Pipeline;
    static Map map;
    constexpr int wave = Arch::wave;
    LdsAccess keys{what + " stores of keys", 16, {}}, values[8];
    for (block.current = 0; block.current < wave; ++block.current) {
        int piece = block.current % P::row_lanes, row = block.current / P::row_lanes;
        keys.offset.push_back(piece < P::key_pieces && row < P::block_kv ? kernel::amd::slot<P::key_pieces>(row, piece) : -1);
        short8 marked[4] = {};
        constexpr short mark = 0x7171;
        for (int j = 0; j < 8; ++j) marked[0][j] = short(mark + j);  // tells the columns apart
        std::memset(map.memory, 0, sizeof map.memory);
        if (P::Values::has(0)) kernel::amd::write_transposed<P::position_pieces>(map.memory, P::Values::piece(block.current) * 8, P::Values::position(block.current), marked);
        for (int j = 0; j < 8; ++j) values[j].offset.push_back(-1);
        for (int at = 0; at < Arch::shared_bytes; at += 8)
            if (short x = *(const short*)(map.memory + at); x >= mark && x < mark + 8) values[x - mark].offset.back() = at;
    }
    all.push_back(keys);
    for (LdsAccess& access : values) access.what = what + " stores of values", access.bytes = 8, all.push_back(access);
}

template <template <class> class Family, Spec s>
void add(std::vector<LdsAccess>& all, const std::string& family) {
    using Arch = Family<ConfigOf<bf16, s>>;
    static const Map map;
    constexpr int side = Arch::side, depth = Arch::depth;
    std::string what = family + " d" + std::to_string(s.head_dim) + " block_kv " + std::to_string(s.block_kv);
    add_reads<Arch, Arch::needs.key_dim / 8, false>(all, what + " reads of keys", map, s.block_kv / side, Arch::needs.key_dim / depth);
    add_reads<Arch, s.block_kv / 8, true>(all, what + " reads of values", map, Arch::needs.value_dim / side, s.block_kv / depth);
    add_writes<Arch>(all, what);
}

template <template <class> class Family, int block_q>
void add_sizes(std::vector<LdsAccess>& all, const std::string& family) {
    add<Family, Spec{.head_dim = 64, .head_dim_v = 64, .block_q = block_q, .block_kv = 64}>(all, family);
    add<Family, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = block_q, .block_kv = 64}>(all, family);
    add<Family, Spec{.head_dim = 256, .head_dim_v = 256, .block_q = block_q, .block_kv = 32}>(all, family);
    add<Family, Spec{.head_dim = 80, .head_dim_v = 96, .block_q = block_q, .block_kv = 128}>(all, family);
    add<Family, Spec{.head_dim = 32, .head_dim_v = 128, .block_q = block_q, .block_kv = 32}>(all, family);
}

}  // namespace

std::vector<LdsAccess> lds_accesses() {
    std::vector<LdsAccess> all;
    add_sizes<kernel::Cdna, 128>(all, "mfma32");
    add_sizes<kernel::Cdna, 64>(all, "mfma16");
    add_sizes<kernel::Cdna4, 128>(all, "gfx950 mfma32");
    add_sizes<kernel::Cdna4, 64>(all, "gfx950 mfma16");
    add<kernel::Rdna3, Spec{.head_dim = 16, .head_dim_v = 256, .block_q = 64, .block_kv = 16}>(all, "wmma11");
    add<kernel::Rdna4, Spec{.head_dim = 128, .head_dim_v = 128, .block_q = 64, .block_kv = 16}>(all, "wmma12");
    add_sizes<kernel::Rdna3, 64>(all, "wmma11");
    add_sizes<kernel::Rdna4, 64>(all, "wmma12");
    return all;
}

}  // namespace tilewright::emulated
