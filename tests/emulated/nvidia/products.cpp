// Products by warpgroups, wgmma as the manual has it: operands by descriptors, or on the left in registers; each warp multiplies 16 rows. They
// read and write when the schedule says so, at the latest when they are waited for; until then the result is NaN.
#include <cmath>
#include <cstring>
#include <limits>

#include "isa/instructions.h"
#include "state.h"

namespace tilewright::emulated::gpu {
namespace {

using Async = Schedule::Async;

float value_of(unsigned short bits, bool bf16 = machine.launch.bf16) {
    if (bf16) return __builtin_bit_cast(float, (unsigned)bits << 16);
    return (float)__builtin_bit_cast(_Float16, bits);
}

// PTX ISA, "Matrix descriptor": start address, leading and stride byte offsets in units of 16 bytes, swizzle in bits 62 and 63.
struct Descriptor {
    unsigned start, leading, stride;
    explicit Descriptor(unsigned long long d, bool swizzles = true) : start((unsigned)(d & 0x3fff) << 4), leading((unsigned)(d >> 16 & 0x3fff) << 4), stride((unsigned)(d >> 32 & 0x3fff) << 4) {
        if (d >> 62 != swizzles) fail(swizzles ? "multiplies by a descriptor without the swizzle of 128 bytes" : "multiplies statistics by a descriptor with a swizzle");
    }
    // Element (row, k) of an operand that is not swizzled, eight of a row in 16 bytes, eight of these side by side.
    unsigned plain(int row, int k) const { return start + (unsigned)k / 8 * leading + (unsigned)row / 8 * stride + (unsigned)row % 8 * 16 + (unsigned)k % 8 * 2; }
    // The 16 bytes that hold element (row, k) of an operand whose rows lie along k, or, turned, (k, column); where within them.
    static unsigned swizzled(unsigned address) { return address ^ (address >> 7 & 7) << 4; }
    unsigned along(int row, int k) const { return swizzled(start + (unsigned)row / 8 * stride + (unsigned)row % 8 * 128 + 2 * (unsigned)k); }
    unsigned across(int k, int column) const {
        return swizzled(start + (unsigned)column / 64 * leading + (unsigned)column % 64 * 2 + (unsigned)k / 8 * stride + (unsigned)k % 8 * 128);
    }
};

// Calls f(address) for all 16-byte pieces that the running warp's product reads.
template <class F>
void for_pieces(const Product& p, F&& f) {
    int first_row = warp_index() % 4 * 16;
    if (p.plain) {
        Descriptor left(p.left, false), right(p.right, false);
        for (int k = 0; k < 16; k += 8) {
            for (int row = 0; row < 16; ++row) f(left.plain(first_row + row, k));
            for (int column = 0; column < p.n; ++column) f(right.plain(column, k));
        }
        return;
    }
    if (!p.registers)
        for (int row = 0; row < 16; ++row) f(Descriptor(p.left).along(first_row + row, 0)), f(Descriptor(p.left).along(first_row + row, 8));
    Descriptor right(p.right);
    if (p.right_turned) {
        for (int k = 0; k < 16; ++k)
            for (int column = 0; column < p.n; column += 8) f(right.across(k, column));
    } else {
        for (int column = 0; column < p.n; ++column) f(right.along(column, 0)), f(right.along(column, 8));
    }
}

// Of all lanes of the running warp, whose products these are.
void multiply(Product* const (&of)[32]) {
    const Product& p = *of[0];
    Block& block = *machine.block;
    auto element = [&](unsigned address) {
        unsigned short bits;
        std::memcpy(&bits, bytes_at(block, address), 2);
        return value_of(bits, p.plain || machine.launch.bf16);
    };
    using I = isa::MmaSync16x8x16;
    static float left[16][16], right[16][256], sum[16][256];
    int first_row = warp_index() % 4 * 16;
    if (p.registers) {
        for (int l = 0; l < 32; ++l)
            for (int e = 0; e < 8; ++e) left[I::a(l, e).i][I::a(l, e).j] = value_of((unsigned short)(of[l]->a[e / 2] >> 16 * (e % 2)));
    } else {
        Descriptor d(p.left, !p.plain);
        for (int i = 0; i < 16; ++i)
            for (int k = 0; k < 16; ++k) left[i][k] = element(p.plain ? d.plain(first_row + i, k) : d.along(first_row + i, k));
    }
    Descriptor d(p.right, !p.plain);
    for (int k = 0; k < 16; ++k)
        for (int j = 0; j < p.n; ++j) right[k][j] = element(p.plain ? d.plain(j, k) : p.right_turned ? d.across(k, j) : d.along(j, k));
    for (int l = 0; l < 32; ++l)
        for (int i = 0; i < p.n / 2; ++i) {
            isa::At at = I::d(l, i % 4);
            sum[at.i][at.j + i / 4 * 8] = p.fresh ? 0 : of[l]->d[i];
        }
    for (int i = 0; i < 16; ++i)
        for (int k = 0; k < 16; ++k)
            for (int j = 0; j < p.n; ++j) sum[i][j] += left[i][k] * right[k][j];
    for (int l = 0; l < 32; ++l)
        for (int i = 0; i < p.n / 2; ++i) {
            isa::At at = I::d(l, i % 4);
            of[l]->d[i] = sum[at.i][at.j + i / 4 * 8];
        }
}

// Of the running warp: the oldest group of all lanes.
void finish_group() {
    Block& block = *machine.block;
    int first_lane = warp_index() * 32;
    size_t count = block.lanes[first_lane].products.front().size();
    for (int l = 0; l < 32; ++l)
        if (block.lanes[first_lane + l].products.front().size() != count) fail("has started other products than its warp");
    for (size_t i = 0; i < count; ++i) {
        Product* of[32];
        for (int l = 0; l < 32; ++l) {
            of[l] = &block.lanes[first_lane + l].products.front()[i];
            if (of[l]->right != of[0]->right || of[l]->left != of[0]->left || of[l]->n != of[0]->n) fail("has started other products than its warp");
            if (!of[l]->before.empty()) std::memcpy(of[l]->d, of[l]->before.data(), of[l]->before.size() * 4);
        }
        for_pieces(*of[0], [&](unsigned address) {
            for_cells(block, address, 16, [&](Cell& c, auto& readers) {
                if (c.coming) fail("multiplies by shared memory that a copy has yet to fill");
                --c.being_read, readers[warp_index()] = warp().clock.of[warp_index()];
            });
        });
        multiply(of);
    }
    for (int l = 0; l < 32; ++l) block.lanes[first_lane + l].products.erase(block.lanes[first_lane + l].products.begin());
}

void start(Product p) {
    Lane& own = running_lane();
    bool under_way = false;
    for (const auto& group : own.products)
        for (const Product& other : group) under_way |= other.d == p.d;
    if (!under_way) {
        p.before.assign(p.d, p.d + p.n / 2);
        for (int i = 0; i < p.n / 2; ++i) p.d[i] = std::numeric_limits<float>::quiet_NaN();
    }
    if (lane() == 0)
        for_pieces(p, [&](unsigned address) {
            check_read(address, 16, false);
            for_cells(*machine.block, address, 16, [](Cell& c, auto&) { ++c.being_read; });
        });
    own.products.back().push_back(std::move(p));
}

}  // namespace

void product(float* d, int n, const unsigned* left_registers, unsigned long long left, unsigned long long right, bool fresh, bool right_turned) {
    Product p{d, n, left_registers != nullptr, fresh, right_turned, false, {}, left, right, {}};
    if (left_registers) std::memcpy(p.a, left_registers, sizeof p.a);
    start(std::move(p));
}
void plain_product(float* d, int n, unsigned long long left, unsigned long long right) { start({d, n, false, true, false, true, {}, left, right, {}}); }
void products_fence() {
    pause();
    if (!machine.launch.schedule.warpgroups_meet) return;
    // Without saying anything about order: this is no barrier, but a warp may have to wait.
    collective<int>("wgmma.fence", 0, [](auto, auto out) {
        for (int l = 0; l < 32; ++l) out(l) = 0;
    });
    int group = warp_index() / 4;
    auto& meeting = machine.block->warpgroups[group];
    unsigned generation = meeting.generation;
    if (++meeting.arrived == 128) {
        meeting.arrived = 0, ++meeting.generation;
        wake_all(*machine.block, {"its warpgroup", (unsigned long long)group, 0});
    }
    while (meeting.generation == generation) wait({"its warpgroup", (unsigned long long)group, 0});
}
void products_commit() {
    running_lane().products.emplace_back();
    // Whether this group is done at once follows from its number, for all lanes alike.
    Async when = machine.launch.schedule.products;
    if (when == Async::late) return;
    long number = ++running_lane().groups;
    unsigned mixed = (unsigned)(number * 40503 + warp_index() * 977) * 2654435761u + machine.launch.schedule.seed * 97;
    if (when == Async::random && (mixed >> 16) % 2) return;
    products_wait(0);
}
void products_wait(int pending) {
    struct None {};
    pause();
    collective<None>("wgmma.wait_group", pending, [&](auto, auto) {
        while ((int)running_lane().products.size() - 1 > pending) finish_group();
    });
}

}  // namespace tilewright::emulated::gpu
