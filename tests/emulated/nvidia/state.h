// What the emulated multiprocessor knows of its lanes, warps, blocks and copies: for its own files alone.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "kernels/arch/sm90_arguments.h"
#include "machine.h"

namespace tilewright::emulated::gpu {

constexpr int most_warps = 20;

// What a warp knows to have happened: of each warp, how many of its releases. Order between warps is known only through barriers, so that a
// missing one shows in every schedule. Lanes of a warp count as one.
struct Clock {
    std::array<unsigned, most_warps> of{};
    void join(const Clock& other) {
        for (int w = 0; w < most_warps; ++w) of[w] = of[w] > other.of[w] ? of[w] : other.of[w];
    }
};

// What a lane waits for, for the report of a deadlock.
struct Wait {
    const char* what = "";
    unsigned long long which = 0;
    int value = 0;
    bool operator==(const Wait&) const = default;
};

struct Product {
    float* d;
    int n;
    bool registers, fresh, right_turned;
    bool plain;  // bf16, not swizzled
    unsigned a[4];
    unsigned long long left, right;
    std::vector<float> before;  // what d held, if this is the first that works on it
};

struct Copy16 {
    unsigned to;
    const void* from;
    bool inside;
};

struct Lane {
    jmp_buf context;
    ucontext_t start;
    std::unique_ptr<char[]> stack;
    bool begun = false;
    Wait wait;
    unsigned fences = 0;                             // of the asynchronous proxy
    long groups = 0;                                 // of products, so far
    std::vector<std::vector<Product>> products{{}};  // groups not done, the last of which is not committed
    std::vector<std::vector<Copy16>> copies{{}};
    struct Range {
        unsigned address, bytes;
    };
    std::vector<Range> bulk_reads;  // not waited for
};

struct Meeting {
    const char* instruction = nullptr;
    int arrived = 0;
    unsigned generation = 0;
    Slots slots[2];  // in turn: a lane that is one meeting ahead does not write what others have yet to read
};

struct Warp {
    unsigned ready = 0, done = 0;  // lanes
    Meeting meeting;
    Clock clock;
    int registers = 0;
};

struct NamedBarrier {
    int threads = 0, arrived = 0;
    unsigned generation = 0;
    bool any = false, result[2]{};
    Clock arriving, complete[2];
};
struct MemoryBarrier {
    int arrivals = 0, missing = 0;
    long bytes = 0;  // to come
    unsigned phase = 0;
    bool fenced = false;
    Clock arriving, complete;
};

// Eight bytes of shared memory.
struct Cell {
    unsigned written = 0;  // the writer's clock
    unsigned fences = 0;   // of the lane that wrote by itself, at the time
    short writer = -1, lane = -1;
    short coming = 0, being_read = 0;  // copies that will write, operations of the asynchronous proxy that will read
    bool races = false, relaxed = false;
};

struct Block {
    int index = 0;
    std::vector<Lane> lanes;
    std::vector<Warp> warps;
    std::unordered_map<unsigned, MemoryBarrier> barriers;
    NamedBarrier named[16];
    struct {
        int arrived = 0;
        unsigned generation = 0;
    } warpgroups[most_warps / 4];
    std::unique_ptr<char[]> storage;
    char* shared = nullptr;
    std::vector<Cell> cells;
    std::vector<std::array<unsigned, most_warps>> readers;  // of each cell, their clocks
    int running = 0, free_registers = 0, copies_on_their_way = 0;
    std::string name() const { return "block " + std::to_string(index) + ": "; }
};

// On its way to shared memory (box, bytes), or from there.
struct Transfer {
    enum class Kind { box, bytes, add, store } kind;
    unsigned address, bytes, barrier = 0;
    const EncodedMap* map = nullptr;
    std::array<int, 5> at{};
    const void* from = nullptr;
    float* to = nullptr;
    Block* block = nullptr;
    int lane = 0;
    Clock clock{};               // of who asked
    std::vector<char> read{};    // what has been read of shared memory, and not written yet
    bool to_shared() const { return kind == Kind::box || kind == Kind::bytes; }
};

struct Machine {
    Launch launch;
    const std::function<void(char*)>* body;
    std::mt19937 random;
    std::vector<std::unique_ptr<Block>> blocks;  // resident
    std::unique_ptr<Block> ended;
    int started = 0;
    Block* block = nullptr;
    int current = 0;  // lane of the block
    std::vector<Transfer> transfers;
    jmp_buf caller;
    std::string failure;
    bool chance(unsigned one_in) { return random() % one_in == 0; }
};
extern Machine machine;

inline int warp_index() { return machine.current / 32; }
inline Warp& warp() { return machine.block->warps[warp_index()]; }
inline Lane& running_lane() { return machine.block->lanes[machine.current]; }
// A release: what happened so far goes into `to`.
inline void publish_clock(Clock& to) { to.join(warp().clock), ++warp().clock.of[warp_index()]; }

constexpr unsigned shared_base = 3 * 1024;  // dynamic shared memory starts at any multiple of 1024, which entry points ask for

// Suspends the running lane until it is woken.
void wait(const Wait& what);
void wake(Block& block, int lane);
void wake_all(Block& block, const Wait& what);
bool land_one();  // of the transfers under way; false if there are none
void complete_bytes(Block& block, unsigned barrier, long bytes, const Clock& clock);

// The running warp's accesses, checked. Generic ones by the running lane itself.
void check_read(unsigned from, int bytes, bool generic);
void check_write(unsigned to, int bytes, bool generic);
inline char* bytes_at(Block& block, unsigned address) { return block.shared + (address - shared_base); }
// Calls f(cell, readers) for all cells of a range.
template <class F>
void for_cells(Block& block, unsigned address, int bytes, F&& f) {
    unsigned first = (address - shared_base) / 8, last = (address - shared_base + bytes - 1) / 8;
    for (unsigned i = first; i <= last; ++i) f(block.cells[i], block.readers[i]);
}

}  // namespace tilewright::emulated::gpu
