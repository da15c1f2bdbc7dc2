// Lanes, their schedule, and meetings of warps.
#include "state.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace tilewright::emulated::gpu {

Machine machine;

Schedule schedule_of(int order) {
    using Warps = Schedule::Warps;
    using Async = Schedule::Async;
    switch (order) {
        case 0: return {Warps::in_turn, Async::late, Async::late, false, 1};
        case 1: return {Warps::first_ahead, Async::late, Async::late, true, 2};
        case 2: return {Warps::last_ahead, Async::at_once, Async::at_once, false, 3};
        default: return {Warps::random, Async::random, Async::random, order % 2 == 0, (unsigned)order + 1};
    }
}

int thread() { return machine.current; }
int block_index() { return machine.block->index; }
int block_count() { return machine.launch.blocks; }

void fail(const std::string& what) {
    if (machine.failure.empty()) machine.failure = machine.block->name() + "warp " + std::to_string(warp_index()) + " lane " + std::to_string(lane()) + " " + what;
    _longjmp(machine.caller, 1);
}

namespace {

constexpr size_t stack_bytes = 1 << 17;

std::string deadlock() {
    std::ostringstream text;
    text << "no lane can go on: ";
    for (auto& block : machine.blocks)
        for (size_t w = 0; w < block->warps.size(); ++w) {
            std::vector<std::pair<Wait, int>> waits;
            for (int l = 0; l < 32; ++l) {
                if (block->warps[w].done >> l & 1) continue;
                const Wait& wait = block->lanes[w * 32 + l].wait;
                auto same = std::find_if(waits.begin(), waits.end(), [&](auto& x) { return x.first == wait; });
                if (same == waits.end()) waits.push_back({wait, 1});
                else ++same->second;
            }
            for (auto& [wait, lanes] : waits) {
                text << block->name() << lanes << " lanes of warp " << w << " wait for " << wait.what;
                if (wait.what == std::string("memory barrier")) {
                    const MemoryBarrier& b = block->barriers[(unsigned)wait.which];
                    text << " +" << wait.which - shared_base << " parity " << wait.value << " (phase " << b.phase << ", " << b.missing << " of " << b.arrivals << " arrivals and " << b.bytes
                         << " bytes missing)";
                } else if (wait.what == std::string("named barrier")) {
                    const NamedBarrier& b = block->named[wait.which];
                    text << " " << wait.which << " (" << b.arrived << " of " << b.threads << " threads)";
                }
                text << "; ";
            }
        }
    return text.str();
}

// The next warp that can go on; none: null.
Block* next_warp(int& of) {
    struct At {
        Block* block;
        int warp;
    };
    static std::vector<At> ready;
    ready.clear();
    size_t own = 0;
    for (auto& block : machine.blocks)
        for (int w = 0; w < (int)block->warps.size(); ++w) {
            if (block->warps[w].ready) ready.push_back({block.get(), w});
            if (block.get() == machine.block && w == warp_index()) own = ready.size();  // those behind come first
        }
    if (ready.empty()) return nullptr;
    size_t n = 0;
    switch (machine.launch.schedule.warps) {
        case Schedule::Warps::in_turn: n = own % ready.size(); break;
        case Schedule::Warps::first_ahead: n = 0; break;
        case Schedule::Warps::last_ahead: n = ready.size() - 1; break;
        case Schedule::Warps::random: n = machine.random() % ready.size(); break;
    }
    of = ready[n].warp;
    return ready[n].block;
}
int lane_of(unsigned ready, int after) {
    if (machine.launch.schedule.warps == Schedule::Warps::random) after = (int)(machine.random() % 32);
    unsigned later = after < 31 ? ready & ~0u << (after + 1) : 0;
    return __builtin_ctz(later ? later : ready);
}

void go_to(Block* block, int next) {
    machine.block = block, machine.current = next;
    Lane& lane = block->lanes[next];
    if (lane.begun) _longjmp(lane.context, 1);
    lane.begun = true;
    setcontext(&lane.start);
}

// `stays`: in this warp, if a lane of it can go on.
void choose(bool stays, Block*& block, int& next) {
    bool lands = machine.launch.schedule.copies == Schedule::Async::random;
    for (;;) {
        if (lands && machine.chance(8)) land_one();
        int w = warp_index();
        block = machine.block;
        bool own = stays && machine.current < (int)block->lanes.size() && block->warps[w].ready;
        if (!own) block = next_warp(w);
        if (block) {
            next = w * 32 + lane_of(block->warps[w].ready, block == machine.block && w == warp_index() ? lane() : 31);
            return;
        }
        if (!land_one()) {
            machine.failure = deadlock();
            _longjmp(machine.caller, 1);
        }
    }
}
void switch_away(bool stays) {
    Block* block;
    int next;
    choose(stays, block, next);
    Lane& from = running_lane();
    if (block == machine.block && next == machine.current) return;
    if (_setjmp(from.context) == 0) go_to(block, next);
}

void start_block();

void run_lane() {
    (*machine.body)(machine.block->shared);
    Block* block = machine.block;
    Warp& own = warp();
    own.ready &= ~(1u << lane()), own.done |= 1u << lane();
    Lane& finished = running_lane();
    if (finished.products.size() != 1 || !finished.products[0].empty()) fail("ends before its products");
    for (const auto& group : finished.copies)
        if (!group.empty()) fail("ends before its copies");
    if (--block->running == 0) {
        if (block->copies_on_their_way) fail("is the last of its block, and copies are still on their way");
        auto here = std::find_if(machine.blocks.begin(), machine.blocks.end(), [&](auto& b) { return b.get() == block; });
        machine.ended = std::move(*here);  // its stacks, of which this lane's is one, last until the next block has ended
        machine.blocks.erase(here);
        if (machine.started < machine.launch.blocks) start_block();
        if (machine.blocks.empty()) _longjmp(machine.caller, 1);
    }
    Block* to;
    int next;
    choose(true, to, next);
    go_to(to, next);
}

void start_block() {
    auto block = std::make_unique<Block>();
    const Launch& l = machine.launch;
    block->index = machine.started++, block->running = l.threads;
    block->lanes = std::vector<Lane>(l.threads), block->warps = std::vector<Warp>(l.threads / 32);
    block->storage = std::make_unique<char[]>(l.shared_bytes + 2048);
    block->shared = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(block->storage.get()) + 1023) / 1024 * 1024 + shared_base % 1024);
    std::memset(block->shared, 0xff, l.shared_bytes);
    block->cells.resize((l.shared_bytes + 7) / 8), block->readers.resize(block->cells.size());
    for (size_t w = 0; w < block->warps.size(); ++w) {
        Warp& warp = block->warps[w];
        warp.ready = ~0u, warp.clock.of[w] = 1, warp.registers = l.registers;
    }
    for (Lane& lane : block->lanes) {
        lane.stack.reset(new char[stack_bytes]);
        getcontext(&lane.start);
        lane.start.uc_stack.ss_sp = lane.stack.get(), lane.start.uc_stack.ss_size = stack_bytes, lane.start.uc_link = nullptr;
        makecontext(&lane.start, run_lane, 0);
    }
    machine.blocks.push_back(std::move(block));
}

}  // namespace

void wait(const Wait& what) {
    Warp& own = warp();
    running_lane().wait = what;
    own.ready &= ~(1u << lane());
    switch_away(true);
}
void wake(Block& block, int lane) { block.warps[lane / 32].ready |= 1u << lane % 32; }
void wake_all(Block& block, const Wait& what) {
    for (int l = 0; l < (int)block.lanes.size(); ++l)
        if (block.lanes[l].wait == what && !(block.warps[l / 32].ready >> l % 32 & 1) && !(block.warps[l / 32].done >> l % 32 & 1)) wake(block, l);
}
void pause() {
    if (machine.launch.schedule.warps == Schedule::Warps::random && machine.chance(6)) switch_away(false);
}

Slots& slots() {
    Meeting& meeting = warp().meeting;
    return meeting.slots[meeting.generation & 1];
}
void meet(const char* instruction, void (*all_here)(void*, Slots&), void* compute) {
    Block& block = *machine.block;
    int w = warp_index();
    Meeting& meeting = warp().meeting;
    if (meeting.arrived == 0) meeting.instruction = instruction;
    if (std::strcmp(meeting.instruction, instruction) != 0) fail("is at " + std::string(instruction) + ", other lanes of its warp at " + meeting.instruction);
    unsigned generation = meeting.generation;
    if (++meeting.arrived < 32) {
        while (meeting.generation == generation) wait({instruction, (unsigned long long)w, 0});
        return;
    }
    all_here(compute, meeting.slots[generation & 1]);
    meeting.arrived = 0, ++meeting.generation;
    block.warps[w].ready = ~block.warps[w].done;
}
unsigned ballot(bool x) {
    return collective<unsigned>("a vote", (int)x, [](auto in, auto out) {
        unsigned all = 0;
        for (int l = 0; l < 32; ++l) all |= (unsigned)(in(l) != 0) << l;
        for (int l = 0; l < 32; ++l) out(l) = all;
    });
}
void sync_warp() {
    auto nothing = [](void*, Slots&) {};
    slots(), meet("__syncwarp", nothing, nullptr);
}

std::string run(const Launch& launch, const std::function<void(char*)>& body) {
    machine.launch = launch, machine.body = &body, machine.random.seed(launch.schedule.seed);
    machine.blocks.clear(), machine.transfers.clear(), machine.failure.clear(), machine.started = 0;
    if (launch.threads % 32 || launch.threads > 32 * most_warps) return "threads is " + std::to_string(launch.threads);
    if (launch.blocks == 0) return "";
    if (_setjmp(machine.caller) == 0) {
        while (machine.started < launch.blocks && machine.started < launch.resident) start_block();
        machine.block = machine.blocks.front().get(), machine.current = 0;
        Block* block;
        int next;
        choose(false, block, next);
        go_to(block, next);
    }
    machine.blocks.clear(), machine.ended.reset();
    return machine.failure;
}

}  // namespace tilewright::emulated::gpu
