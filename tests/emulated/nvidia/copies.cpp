// Copies to shared memory and from it: by the copy engine, and by threads. They land when the schedule says so; until then what they
// write is NaN.
#include <cstdint>
#include <cstring>

#include "state.h"

namespace tilewright::emulated::gpu {
namespace {

using Async = Schedule::Async;

// Rows of 128 bytes, in pieces of 16 that change places within eight rows; zeros where the tensor ends.
void fill_box(const Transfer& t) {
    const kernel::TensorMapShape& m = t.map->shape;
    unsigned rows = t.bytes / 128;
    for (unsigned row = 0; row < rows; ++row) {
        long long offset = 0;
        bool inside = true;
        unsigned rest = row;
        for (int d = 1; d < m.rank; ++d) {
            long long at = t.at[d] + (long long)(rest % m.box[d]);
            rest /= m.box[d];
            inside = inside && at >= 0 && at < (long long)m.dims[d];
            offset += at * (long long)m.strides[d - 1];
        }
        for (int piece = 0; piece < 8; ++piece) {
            unsigned to = t.address + row * 128 + piece * 16;
            to ^= (to >> 7 & 7) << 4;
            long long column = t.at[0] + piece * 8, left = (long long)m.dims[0] - column;
            char* here = bytes_at(*t.block, to);
            std::memset(here, 0, 16);
            if (inside && left > 0) std::memcpy(here, t.map->address + offset + 2 * column, left < 8 ? 2 * left : 16);
        }
    }
}
void read_source(Transfer& t) {
    const char* from = bytes_at(*t.block, t.address);
    if (t.read.empty()) t.read.assign(from, from + t.bytes);
}
void land(size_t which) {
    Transfer t = std::move(machine.transfers[which]);
    machine.transfers.erase(machine.transfers.begin() + (long)which);
    Block& block = *t.block;
    --block.copies_on_their_way;
    if (!t.to_shared()) {
        read_source(t);
        for (unsigned i = 0; i < t.bytes / 4; ++i) {
            float x;
            std::memcpy(&x, t.read.data() + 4 * i, 4);
            t.to[i] = t.kind == Transfer::Kind::add ? t.to[i] + x : x;
        }
        return;
    }
    if (t.kind == Transfer::Kind::box) fill_box(t);
    else std::memcpy(bytes_at(block, t.address), t.from, t.bytes);
    for_cells(block, t.address, (int)t.bytes, [](Cell& c, auto&) { --c.coming; });
    complete_bytes(block, t.barrier, t.bytes, t.clock);
}

void begin(Transfer t) {
    pause();
    t.block = machine.block, t.lane = machine.current, t.clock = warp().clock;
    ++t.block->copies_on_their_way;
    if (t.to_shared()) {
        auto barrier = t.block->barriers.find(t.barrier);
        if (barrier == t.block->barriers.end() || !barrier->second.fenced) fail("copies with a barrier that is not there yet");
        check_write(t.address, (int)t.bytes, false);
        for_cells(*t.block, t.address, (int)t.bytes, [](Cell& c, auto&) { ++c.coming, c.lane = -1; });
        std::memset(bytes_at(*t.block, t.address), 0xff, t.bytes);
    } else {
        check_read(t.address, (int)t.bytes, false);
        for_cells(*t.block, t.address, (int)t.bytes, [](Cell& c, auto&) { ++c.being_read; });
        running_lane().bulk_reads.push_back({t.address, t.bytes});
    }
    machine.transfers.push_back(std::move(t));
    Async when = machine.launch.schedule.copies;
    if (when == Async::at_once || (when == Async::random && machine.chance(4))) land(machine.transfers.size() - 1);
    pause();
}
const EncodedMap* decoded(const kernel::TensorMap* map) { return reinterpret_cast<const EncodedMap*>(map); }

}  // namespace

bool land_one() {
    if (machine.transfers.empty()) return false;
    land(machine.launch.schedule.copies == Async::random ? machine.random() % machine.transfers.size() : machine.transfers.size() - 1);
    return true;
}

kernel::TensorMap encode(const void* address, const kernel::TensorMapShape& shape) {
    static_assert(sizeof(EncodedMap) <= sizeof(kernel::TensorMap));
    kernel::TensorMap map{};
    EncodedMap encoded{shape, static_cast<const char*>(address)};
    std::memcpy(&map, &encoded, sizeof encoded);
    return map;
}
void check_box(const kernel::TensorMap* map, const std::array<int, 5>& at, int rank) {
    const kernel::TensorMapShape& m = decoded(map)->shape;
    if (m.rank != rank) fail("copies by a map of " + std::to_string(m.rank) + " dimensions as if it had " + std::to_string(rank));
    if ((uintptr_t)decoded(map)->address % 16) fail("copies from an address that is no multiple of 16");
    for (int d = 0; d < rank; ++d) {
        if (m.box[d] < 1 || m.box[d] > 256 || (d == 0 && m.box[d] != kernel::panel_columns)) fail("copies boxes of " + std::to_string(m.box[d]));
        if (d > 0 && m.strides[d - 1] % 16) fail("copies by a stride that is no multiple of 16");
        if (at[d] < 0 || (d != 1 && (unsigned long long)at[d] >= m.dims[d])) fail("copies from coordinate " + std::to_string(at[d]) + " of dimension " + std::to_string(d));
    }
}
void copy_box(unsigned to, const kernel::TensorMap* map, unsigned barrier, const std::array<int, 5>& at, int rank) {
    check_box(map, at, rank);
    unsigned bytes = 2;
    for (int d = 0; d < rank; ++d) bytes *= decoded(map)->shape.box[d];
    if (to % 128) fail("copies to +" + std::to_string(to - shared_base) + ", which is no multiple of 128");
    begin({.kind = Transfer::Kind::box, .address = to, .bytes = bytes, .barrier = barrier, .map = decoded(map), .at = at});
}
void copy_bytes(unsigned to, const void* from, int bytes, unsigned barrier) {
    if (to % 16 || bytes % 16 || (uintptr_t)from % 16) fail("copies " + std::to_string(bytes) + " bytes that are not aligned");
    begin({.kind = Transfer::Kind::bytes, .address = to, .bytes = (unsigned)bytes, .barrier = barrier, .from = from});
}
void bulk_to_memory(float* to, unsigned from, int bytes, bool adds) {
    if (from % 16 || bytes % 16 || (uintptr_t)to % 16) fail("copies " + std::to_string(bytes) + " bytes that are not aligned");
    begin({.kind = adds ? Transfer::Kind::add : Transfer::Kind::store, .address = from, .bytes = (unsigned)bytes, .to = to});
}
void bulk_wait(bool only_read) {
    pause();
    for (size_t i = 0; i < machine.transfers.size();) {
        Transfer& t = machine.transfers[i];
        if (t.to_shared() || t.block != machine.block || t.lane != machine.current) ++i;
        else if (only_read) read_source(t), ++i;
        else land(i);
    }
    for (const Lane::Range& r : running_lane().bulk_reads)
        for_cells(*machine.block, r.address, (int)r.bytes, [](Cell& c, auto& readers) { --c.being_read, readers[warp_index()] = warp().clock.of[warp_index()]; });
    running_lane().bulk_reads.clear();
}

void copy16(unsigned to, const void* from, bool inside) {
    if (to % 16 || (uintptr_t)from % 16) fail("copies 16 bytes that are not aligned");
    check_write(to, 16, true);
    for_cells(*machine.block, to, 16, [](Cell& c, auto&) { ++c.coming; });
    std::memset(bytes_at(*machine.block, to), 0xff, 16);
    running_lane().copies.back().push_back({to, from, inside});
}
void copies_commit() { running_lane().copies.emplace_back(); }
void copies_wait(int pending) {
    Lane& own = running_lane();
    int warp_number = warp_index();
    while ((int)own.copies.size() - 1 > pending) {
        for (const Copy16& copy : own.copies.front()) {
            char* to = bytes_at(*machine.block, copy.to);
            std::memset(to, 0, 16);
            if (copy.inside) std::memcpy(to, copy.from, 16);
            for_cells(*machine.block, copy.to, 16, [&](Cell& c, auto&) { --c.coming, c.writer = (short)warp_number, c.written = warp().clock.of[warp_number]; });
        }
        own.copies.erase(own.copies.begin());
    }
}

}  // namespace tilewright::emulated::gpu
