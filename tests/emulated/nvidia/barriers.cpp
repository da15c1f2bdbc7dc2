// Barriers by number and in shared memory, the registers that warps give each other, numbers in memory that lanes wait for.
#include "state.h"

namespace tilewright::emulated::gpu {

bool named_barrier(int barrier, int threads, bool waits, bool mine) {
    struct In {
        int barrier, threads;
        bool waits, mine;
    };
    struct Out {
        unsigned generation;
    };
    pause();
    NamedBarrier& b = machine.block->named[barrier & 15];
    Out came = collective<Out>("bar", In{barrier, threads, waits, mine}, [&](auto in, auto out) {
        for (int l = 0; l < 32; ++l) {
            if (in(l).barrier != barrier || in(l).threads != threads || in(l).waits != waits) fail("is at another barrier than its warp");
            b.any |= in(l).mine, out(l) = {b.generation};
        }
        if (b.arrived == 0) b.threads = threads;
        if (b.threads != threads) fail("brings " + std::to_string(threads) + " threads to barrier " + std::to_string(barrier) + ", others " + std::to_string(b.threads));
        publish_clock(b.arriving);
        if ((b.arrived += 32) > threads) fail("is one too many at barrier " + std::to_string(barrier));
        if (b.arrived < threads) return;
        b.complete[b.generation & 1] = b.arriving, b.result[b.generation & 1] = b.any;
        b.arriving = {}, b.any = false, b.arrived = 0, ++b.generation;
        wake_all(*machine.block, {"named barrier", (unsigned long long)barrier, 0});
    });
    if (!waits) return false;
    while (b.generation == came.generation) wait({"named barrier", (unsigned long long)barrier, 0});
    warp().clock.join(b.complete[came.generation & 1]);
    return b.result[came.generation & 1];
}

bool sync_block(bool mine) { return named_barrier(0, machine.launch.threads, true, mine); }

namespace {

MemoryBarrier& at(Block& block, unsigned address) {
    auto found = block.barriers.find(address);
    if (found == block.barriers.end()) fail("uses a barrier at +" + std::to_string(address - shared_base) + ", where there is none");
    return found->second;
}
void complete_if_done(Block& block, unsigned address, MemoryBarrier& b) {
    if (b.missing || b.bytes) return;
    b.complete = b.arriving, b.arriving = {}, b.missing = b.arrivals;
    ++b.phase;
    for (int parity = 0; parity < 2; ++parity) wake_all(block, {"memory barrier", address, parity});
}
void arrive(unsigned barrier, long bytes) {
    pause();
    MemoryBarrier& b = at(*machine.block, barrier);
    check_read(barrier, 8, true);
    if (b.missing == 0) fail("arrives once too often at barrier +" + std::to_string(barrier - shared_base));
    publish_clock(b.arriving);
    b.bytes += bytes, --b.missing;
    complete_if_done(*machine.block, barrier, b);
}

}  // namespace

void barrier_init(unsigned barrier, int arrivals) {
    if (barrier % 8) fail("puts a barrier at +" + std::to_string(barrier - shared_base));
    check_write(barrier, 8, true);
    MemoryBarrier b;
    b.arrivals = b.missing = arrivals;
    if (!machine.block->barriers.emplace(barrier, b).second) fail("makes a barrier where there is one");
}
void barrier_init_done() {
    for (auto& [address, b] : machine.block->barriers) b.fenced = true;
}
void barrier_arrive(unsigned barrier) { arrive(barrier, 0); }
void barrier_expect(unsigned barrier, int bytes) { arrive(barrier, bytes); }
void barrier_wait(unsigned barrier, int parity) {
    pause();
    MemoryBarrier& b = at(*machine.block, barrier);
    check_read(barrier, 8, true);
    while ((int)(b.phase & 1) == parity) wait({"memory barrier", barrier, parity});
    warp().clock.join(b.complete);
}
void complete_bytes(Block& block, unsigned barrier, long bytes, const Clock& clock) {
    MemoryBarrier& b = at(block, barrier);
    b.arriving.join(clock);
    b.bytes -= bytes;
    complete_if_done(block, barrier, b);
}

void move_registers(int registers, bool takes) {
    struct None {};
    collective<None>("setmaxnreg", registers, [&](auto in, auto) {
        for (int l = 0; l < 32; ++l)
            if (in(l) != registers) fail("wants other registers than its warp");
        int change = registers - warp().registers;
        if (takes ? change < 0 : change > 0) fail("has " + std::to_string(warp().registers) + " registers and asks for " + std::to_string(registers));
        if (!takes) machine.block->free_registers -= 32 * change, warp().registers = registers;
    });
    if (!takes) {
        wake_all(*machine.block, {"registers", 0, 0});
        return;
    }
    Block& block = *machine.block;
    Warp& own = warp();
    while (own.registers != registers) {  // the first lane that finds them takes them for its warp
        int change = 32 * (registers - own.registers);
        if (block.free_registers < change) {
            wait({"registers", 0, 0});
            continue;
        }
        block.free_registers -= change, own.registers = registers;
    }
}

void await_number(const unsigned* number, unsigned value) {
    pause();
    while (*number != value) wait({"a number in memory", (unsigned long long)number, (int)value});
}
void number_changed() {
    for (auto& block : machine.blocks)
        for (int l = 0; l < (int)block->lanes.size(); ++l)
            if (block->lanes[l].wait.what == std::string("a number in memory") && !(block->warps[l / 32].done >> l % 32 & 1)) wake(*block, l);
    pause();
}

}  // namespace tilewright::emulated::gpu
