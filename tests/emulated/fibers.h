// Runs the lanes of a block as fibers on one thread. They meet in groups, a warp or the whole block, and hand each other values.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace tilewright::emulated {

// In which order lanes run between meetings. A missing barrier shows where one warp runs far ahead of another.
enum class Order { lockstep, first_warp_ahead, last_warp_ahead };

struct Group {
    static constexpr int most_lanes = 128, most_bytes = 256;
    struct Slots {
        alignas(64) char in[most_lanes][most_bytes], out[most_lanes][most_bytes];
    };
    int size = 0, arrived = 0;
    unsigned generation = 0;
    // Two in turn: a lane that is one meeting ahead does not write what others have yet to read.
    std::unique_ptr<Slots[]> slots;
};

struct Block {
    int threads = 0, warp_size = 1, index = 0, current = 0, running = 0;
    Order order = Order::lockstep;
    std::function<void()> body;
    std::vector<ucontext_t> start;
    std::vector<char> begun, done;
    std::unique_ptr<jmp_buf[]> fibers;
    std::vector<std::unique_ptr<char[]>> stacks;
    std::vector<Group> warps;
    Group everyone;
    jmp_buf caller;
    long idle = 0;  // switches since anything happened
};
inline Block block;

inline int thread() { return block.current; }
inline int lane() { return block.current % block.warp_size; }

// Continues lane `next`; returns when somebody continues this one.
inline void switch_to(int next) {
    int from = block.current;
    if (next == from) return;
    block.current = next;
    if (_setjmp(block.fibers[from]) == 0) {
        if (block.begun[next]) _longjmp(block.fibers[next], 1);
        block.begun[next] = 1;
        setcontext(&block.start[next]);
    }
}
inline int next_of_all() {
    int n = block.current;
    do n = (n + 1) % block.threads;
    while (block.done[n]);
    return n;
}
inline int next_of_warp() {
    int first = block.current / block.warp_size * block.warp_size, n = block.current;
    do n = first + (n + 1 - first) % block.warp_size;
    while (block.done[n]);
    return n;
}
// From a meeting of all: the next lane of this warp; from its last, the first of the next warp in order.
inline int next_at_barrier() {
    int warps = block.threads / block.warp_size, warp = block.current / block.warp_size;
    int n = block.current + 1;
    if (n % block.warp_size == 0) n = (warp + (block.order == Order::last_warp_ahead ? warps - 1 : 1)) % warps * block.warp_size;
    return n % block.threads;
}

inline void meet(Group& group, const std::function<void(Group::Slots&)>& all_here) {
    unsigned generation = group.generation;
    if (++group.arrived == group.size) {
        if (all_here) all_here(group.slots[generation & 1]);
        group.arrived = 0, ++group.generation, block.idle = 0;
        return;
    }
    while (group.generation == generation) {
        if (++block.idle > 64L * block.threads) std::fprintf(stderr, "emulated block %d: some lanes never meet\n", block.index), std::abort();
        bool ahead = block.order != Order::lockstep;
        switch_to(!ahead ? next_of_all() : &group == &block.everyone ? next_at_barrier() : next_of_warp());
    }
}
inline void barrier() { meet(block.everyone, nullptr); }

// Every lane of the warp gives an In and gets an Out; compute(in, out) fills out(lane) from in(lane), once for all.
template <class Out, class In, class Compute>
Out collective(const In& in, Compute&& compute) {
    static_assert(sizeof(In) <= Group::most_bytes && sizeof(Out) <= Group::most_bytes);
    Group& warp = block.warps[block.current / block.warp_size];
    int own = lane();
    Group::Slots& slots = warp.slots[warp.generation & 1];
    std::memcpy(slots.in[own], &in, sizeof in);
    meet(warp, [&](Group::Slots& s) {
        compute([&](int l) -> const In& { return *reinterpret_cast<const In*>(s.in[l]); },
                [&](int l) -> Out& { return *reinterpret_cast<Out*>(s.out[l]); });
    });
    Out out;
    std::memcpy(&out, slots.out[own], sizeof out);
    return out;
}
template <class T>
T from_lane(T x, int from) {
    struct In {
        T x;
        int from;
    };
    return collective<T>(In{x, from}, [](auto in, auto out) {
        for (int l = 0; l < block.warp_size; ++l) out(l) = in(in(l).from).x;
    });
}
inline unsigned long long ballot(bool x) {
    return collective<unsigned long long>(int(x), [](auto in, auto out) {
        unsigned long long all = 0;
        for (int l = 0; l < block.warp_size; ++l) all |= (unsigned long long)(in(l) != 0) << l % 64;
        for (int l = 0; l < block.warp_size; ++l) out(l) = all;
    });
}

inline void run_fiber() {
    block.body();
    block.done[block.current] = 1, block.idle = 0;
    if (--block.running == 0) _longjmp(block.caller, 1);
    int next = next_of_all();
    block.current = next;
    if (block.begun[next]) _longjmp(block.fibers[next], 1);
    block.begun[next] = 1;
    setcontext(&block.start[next]);
}

inline void run_block(int index, int threads, int warp_size, Order order, std::function<void()> body) {
    constexpr size_t stack_bytes = 1 << 17;
    block.index = index, block.threads = block.running = threads, block.warp_size = warp_size, block.order = order, block.idle = 0;
    block.body = std::move(body);
    block.start.assign(threads, {}), block.begun.assign(threads, 0), block.done.assign(threads, 0);
    block.fibers = std::make_unique<jmp_buf[]>(threads);
    auto prepare = [](Group& group, int size) {
        group.size = size, group.arrived = 0, group.generation = 0;
        if (!group.slots) group.slots = std::make_unique<Group::Slots[]>(2);
    };
    block.warps.resize(threads / warp_size);
    for (Group& warp : block.warps) prepare(warp, warp_size);
    prepare(block.everyone, threads);
    while (int(block.stacks.size()) < threads) block.stacks.emplace_back(new char[stack_bytes]);
    for (int i = 0; i < threads; ++i) {
        getcontext(&block.start[i]);
        block.start[i].uc_stack.ss_sp = block.stacks[i].get(), block.start[i].uc_stack.ss_size = stack_bytes;
        block.start[i].uc_link = nullptr;
        makecontext(&block.start[i], run_fiber, 0);
    }
    if (_setjmp(block.caller) == 0) {
        block.current = order == Order::last_warp_ahead ? threads - warp_size : 0;
        block.begun[block.current] = 1;
        setcontext(&block.start[block.current]);
    }
}

}  // namespace tilewright::emulated
