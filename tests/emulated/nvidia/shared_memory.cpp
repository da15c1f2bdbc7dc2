// Accesses to shared memory, each held against what the warp knows to have happened.
#include <cstring>

#include "state.h"

namespace tilewright::emulated::gpu {
namespace {

std::string place(unsigned address) { return "shared memory at +" + std::to_string((int)(address - shared_base)); }
void check_range(unsigned address, int bytes) {
    if (address < shared_base || address + bytes > shared_base + (unsigned)machine.launch.shared_bytes) fail("leaves its shared memory: " + std::to_string(bytes) + " bytes at +" + std::to_string((int)(address - shared_base)));
}
bool knows(const Clock& clock, const Cell& cell) { return cell.writer < 0 || cell.written <= clock.of[cell.writer]; }
// What a lane wrote by itself, and has not fenced: the asynchronous proxy does not see it.
bool unfenced(const Block& block, const Cell& cell) { return cell.lane >= 0 && block.lanes[cell.lane].fences == cell.fences; }

void check_write_by(const Clock& clock, int by_warp, unsigned to, int bytes, bool generic) {
    check_range(to, bytes);
    Block& block = *machine.block;
    for_cells(block, to, bytes, [&](Cell& c, auto& readers) {
        if (c.races) return;
        if (c.relaxed) fail("writes " + place(to) + ", whose accesses are relaxed");
        if (c.coming) fail("writes " + place(to) + ", where a copy is under way");
        if (c.being_read) fail("writes " + place(to) + ", which a product or a copy under way may yet read");
        if (!knows(clock, c)) fail("writes " + place(to) + ", and nothing says that warp " + std::to_string(c.writer) + " wrote it before");
        for (int w = 0; w < (int)block.warps.size(); ++w)
            if (w != by_warp && readers[w] > clock.of[w]) fail("writes " + place(to) + ", and nothing says that warp " + std::to_string(w) + " has read it before");
        if (!generic && unfenced(block, c)) fail("copies to " + place(to) + ", which lane " + std::to_string(c.lane) + " wrote without a fence");
    });
}

}  // namespace

void check_read(unsigned from, int bytes, bool generic) {
    check_range(from, bytes);
    Block& block = *machine.block;
    int w = warp_index();
    const Clock& clock = warp().clock;
    for_cells(block, from, bytes, [&](Cell& c, auto& readers) {
        if (c.races) return;
        if (c.relaxed) fail("reads " + place(from) + ", whose accesses are relaxed");
        if (c.coming) fail("reads " + place(from) + ", which a copy has yet to fill");
        if (!knows(clock, c)) fail("reads " + place(from) + ", and nothing says that warp " + std::to_string(c.writer) + " wrote it before");
        if (!generic && unfenced(block, c)) fail("has " + place(from) + " read by the asynchronous proxy, which lane " + std::to_string(c.lane) + " wrote without a fence");
        readers[w] = clock.of[w];
    });
}
void check_write(unsigned to, int bytes, bool generic) {
    check_write_by(warp().clock, warp_index(), to, bytes, generic);
    for_cells(*machine.block, to, bytes, [&](Cell& c, auto&) { c.writer = (short)warp_index(), c.written = warp().clock.of[warp_index()]; });
    if (generic) for_cells(*machine.block, to, bytes, [&](Cell& c, auto&) { c.lane = (short)machine.current, c.fences = running_lane().fences; });
}

unsigned shared_address(const void* x) { return shared_base + (unsigned)(static_cast<const char*>(x) - machine.block->shared); }
void* shared_pointer(unsigned address) { return bytes_at(*machine.block, address); }
void read_shared(void* to, unsigned from, int bytes) {
    if (from % bytes) fail("reads " + std::to_string(bytes) + " bytes of " + place(from));
    check_read(from, bytes, true);
    std::memcpy(to, bytes_at(*machine.block, from), bytes);
}
void write_shared(unsigned to, const void* from, int bytes) {
    if (to % bytes) fail("writes " + std::to_string(bytes) + " bytes of " + place(to));
    check_write(to, bytes, true);
    std::memcpy(bytes_at(*machine.block, to), from, bytes);
}
void relaxed_access(unsigned address) {
    for_cells(*machine.block, address, 4, [&](Cell& c, auto&) {
        if (!c.relaxed) check_write(address, 4, true), c.relaxed = true;
    });
}
void allow_races(unsigned address) { for_cells(*machine.block, address, 4, [](Cell& c, auto&) { c.races = true; }); }
void fence_async() { ++running_lane().fences; }

}  // namespace tilewright::emulated::gpu
