// A multiprocessor on one thread of the CPU: the lanes of some blocks as fibers, in an order that a schedule chooses. What the hardware may do
// late is done late, or early, or at random; what a kernel must not do, and a state in which no lane can go on, end the launch with a sentence.
#pragma once
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

#include "kernels/arch/sm90_arguments.h"

namespace tilewright::emulated::gpu {

struct Schedule {
    enum class Warps { in_turn, first_ahead, last_ahead, random } warps = Warps::in_turn;
    // When copies land, and when matrix products read their operands and write their results. Late: a copy when no lane can go on, the one
    // asked for last first; a product when it is waited for.
    enum class Async { late, at_once, random } copies = Async::late, products = Async::late;
    bool warpgroups_meet = false;  // a warpgroup's warps wait for each other where their products begin
    unsigned seed = 0;
};
// 0, 1 and 2 are the extremes; from 3 on it is random.
Schedule schedule_of(int order);

struct Launch {
    int blocks = 1, resident = 1, threads = 32;
    int shared_bytes = 0;
    int registers = 255;  // of a thread
    bool bf16 = true;     // the type of matrix products that do not say theirs
    Schedule schedule;
};
// Runs `body` on every lane. Empty, or what went wrong.
std::string run(const Launch& launch, const std::function<void(char* shared)>& body);

// Of the running lane.
int thread();
int block_index();
int block_count();
inline int lane() { return thread() % 32; }

[[noreturn]] void fail(const std::string& what);

// All lanes of a warp meet at an instruction; the last to come computes for all.
struct Slots {
    static constexpr int bytes = 64;
    alignas(64) char in[32][bytes], out[32][bytes];
};
Slots& slots();  // of the next meeting
void meet(const char* instruction, void (*all_here)(void* compute, Slots&), void* compute);

template <class Out, class In, class Compute>
Out collective(const char* instruction, const In& in, Compute&& compute) {
    static_assert(sizeof(In) <= Slots::bytes && sizeof(Out) <= Slots::bytes && std::is_trivially_copyable_v<In>);
    Slots& s = slots();
    std::memcpy(s.in[lane()], &in, sizeof in);
    auto call = [](void* with, Slots& all) {
        (*static_cast<std::remove_reference_t<Compute>*>(with))([&](int l) -> const In& { return *reinterpret_cast<const In*>(all.in[l]); },
                                                                [&](int l) -> Out& { return *reinterpret_cast<Out*>(all.out[l]); });
    };
    int own = lane();
    meet(instruction, call, &compute);
    Out out;
    std::memcpy(&out, s.out[own], sizeof out);
    return out;
}
template <class T>
T from_lane(const char* instruction, T x, int from) {
    struct In {
        T x;
        int from;
    };
    return collective<T>(instruction, In{x, from}, [](auto in, auto out) {
        for (int l = 0; l < 32; ++l) out(l) = in(in(l).from & 31).x;
    });
}
unsigned ballot(bool x);
void sync_warp();
bool sync_block(bool mine = false);

// Barriers of a block, by number, and those in shared memory.
bool named_barrier(int barrier, int threads, bool waits, bool mine = false);  // whether anyone who waited said yes
void barrier_init(unsigned barrier, int arrivals);
void barrier_init_done();
void barrier_arrive(unsigned barrier);
void barrier_expect(unsigned barrier, int bytes);
void barrier_wait(unsigned barrier, int parity);

// Shared memory by address.
unsigned shared_address(const void* x);
void* shared_pointer(unsigned address);
void read_shared(void* to, unsigned from, int bytes);
void write_shared(unsigned to, const void* from, int bytes);
void relaxed_access(unsigned address);  // to these four bytes: it needs no order with others of its kind, and no other kind may follow
void allow_races(unsigned address);  // of these four bytes
void fence_async();

// The copy engine.
struct EncodedMap {  // in the bytes of a tensor map
    kernel::TensorMapShape shape;
    const char* address;
};
kernel::TensorMap encode(const void* address, const kernel::TensorMapShape& shape);
void copy_box(unsigned to, const kernel::TensorMap* map, unsigned barrier, const std::array<int, 5>& at, int rank);
void check_box(const kernel::TensorMap* map, const std::array<int, 5>& at, int rank);  // that it may be asked for
void copy_bytes(unsigned to, const void* from, int bytes, unsigned barrier);
void bulk_to_memory(float* to, unsigned from, int bytes, bool adds);  // a group of its own
void bulk_wait(bool only_read);

// A thread's own copies.
void copy16(unsigned to, const void* from, bool inside);
void copies_commit();
void copies_wait(int pending);

// Products by warpgroups: d (64 x n) += or = left right. `left` is a descriptor, or four registers of a lane.
void product(float* d, int n, const unsigned* left_registers, unsigned long long left, unsigned long long right, bool fresh, bool right_turned);
// The same of bf16 in shared memory without a swizzle, whatever the launch's elements are; it sets d.
void plain_product(float* d, int n, unsigned long long left, unsigned long long right);
void products_fence();
void products_commit();
void products_wait(int pending);

// Until a number in memory has a value; whoever writes one says so.
void await_number(const unsigned* number, unsigned value);
void number_changed();
void pause();  // another warp may run first

void move_registers(int registers, bool takes);

}  // namespace tilewright::emulated::gpu
