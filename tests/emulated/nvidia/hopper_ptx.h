// Stands for kernels/arch/hopper_ptx.h where NVIDIA's kernels run on the emulated multiprocessor, and for wgmma's generated wrappers.
#pragma once
#include "ptx.h"
#include "sm90_arguments.h"

namespace tilewright::kernel {
namespace ptx {

inline void barrier_init(unsigned barrier, int arrivals) { gpu::barrier_init(barrier, arrivals); }
inline void barrier_init_done() { gpu::barrier_init_done(); }
inline void barrier_arrive(unsigned barrier) { gpu::barrier_arrive(barrier); }
inline void barrier_arrive_if(bool now, unsigned barrier) {
    if (now) barrier_arrive(barrier);
}
inline void barrier_arrive_once_if(bool now, unsigned barrier) {  // any lane may be the one: here it is the last
    const bool one = gpu::collective<bool>("elect", now, [](auto, auto out) {
        for (int l = 0; l < 32; ++l) out(l) = l == 31;
    });
    barrier_arrive_if(now && one, barrier);
}
inline void barrier_expect(unsigned barrier, int bytes) { gpu::barrier_expect(barrier, bytes); }
inline void barrier_wait(unsigned barrier, int parity) { gpu::barrier_wait(barrier, parity); }
inline void named_sync(int barrier, int threads) { gpu::named_barrier(barrier, threads, true); }
inline bool named_any(int barrier, int threads, bool mine) { return gpu::named_barrier(barrier, threads, true, mine); }
inline void named_arrive(int barrier, int threads) { gpu::named_barrier(barrier, threads, false); }

inline void copy_panels(unsigned to, const TensorMap* map, unsigned barrier, int row, int head, int batch) { gpu::copy_box(to, map, barrier, {0, row, 0, head, batch}, 5); }
inline void copy_panel(unsigned to, const TensorMap* map, unsigned barrier, int column, int row, int head, int batch) { gpu::copy_box(to, map, barrier, {column, row, head, batch}, 4); }
inline void copy_panels_once(unsigned to, const TensorMap* map, unsigned barrier, int row, int head, int batch) { copy_panels(to, map, barrier, row, head, batch); }
inline void copy_panel_once(unsigned to, const TensorMap* map, unsigned barrier, int column, int row, int head, int batch) { copy_panel(to, map, barrier, column, row, head, batch); }
inline void copy_bytes(unsigned to, const void* from, int bytes, unsigned barrier) { gpu::copy_bytes(to, from, bytes, barrier); }
inline void fetch_map(const TensorMap*) {}
inline void ask_for_panels(const TensorMap* map, int row, int head, int batch) { gpu::check_box(map, {0, row, 0, head, batch}, 5); }
inline void ask_for_panel(const TensorMap* map, int column, int row, int head, int batch) { gpu::check_box(map, {column, row, head, batch}, 4); }
inline void fence_async() { gpu::fence_async(); }
inline void fence_async_memory() {}
inline void wait_for_earlier_kernels() {}
inline void start_later_kernels() {}

template <int registers>
void give_registers() {
    gpu::move_registers(registers, false);
}
template <int registers>
void take_registers() {
    gpu::move_registers(registers, true);
}

inline void wgmma_fence() { gpu::products_fence(); }
inline void wgmma_commit() { gpu::products_commit(); }
template <int pending>
void wgmma_wait() {
    gpu::products_wait(pending);
}

inline void add_floats(float* to, unsigned from, int bytes) { gpu::bulk_to_memory(to, from, bytes, true); }
inline void store_floats(float* to, unsigned from, int bytes) { gpu::bulk_to_memory(to, from, bytes, false); }
inline void add_four(float* to, float a, float b, float c, float d) { to[0] += a, to[1] += b, to[2] += c, to[3] += d; }
inline void wait_until_read() { gpu::bulk_wait(true); }
inline void wait_until_added() { gpu::bulk_wait(false); }
inline void await_turn(const unsigned* turn, unsigned mine) { gpu::await_number(turn, mine); }
inline void await_count(const unsigned* count, unsigned whole) { gpu::await_number(count, whole); }
inline void give_turn(unsigned* turn) { ++*turn, gpu::number_changed(); }
inline void store_matrices(unsigned to, const unsigned (&x)[4]) {
    struct Words {
        unsigned x[4];
    };
    Words row = gpu::collective<Words>("stmatrix", Words{{x[0], x[1], x[2], x[3]}}, [](auto in, auto out) {
        for (int l = 0; l < 32; ++l)
            for (int i = 0; i < 4; ++i) out(l).x[i] = in(l % 8 * 4 + i).x[l / 8];  // row l % 8 of block l / 8
    });
    gpu::write_shared(to, &row, 16);
}
inline void store_matrices_turned(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    struct In {
        unsigned x[4];
    };
    struct Row {
        unsigned words[4];
    };
    Row row = gpu::collective<Row>("stmatrix", In{{a, b, c, d}}, [](auto in, auto out) {
        for (int l = 0; l < 32; ++l)
            for (int j = 0; j < 8; ++j) {  // row l % 8 of block l / 8 is a column of what the lanes hold
                unsigned x = in(j * 4 + l % 8 / 2).x[l / 8] >> 16 * (l % 2) & 0xffff;
                out(l).words[j / 2] = j % 2 ? out(l).words[j / 2] | x << 16 : x;
            }
    });
    gpu::write_shared(to, &row, 16);
}

inline float min_nan(float a, float b) { return a != a ? a : b != b ? b : b < a ? b : a; }
inline void forget(unsigned&) {}

}  // namespace ptx

template <int n>
void wgmma_statistics(float (&d)[n], unsigned long long a, unsigned long long b) {
    emulated::gpu::plain_product(d, 2 * n, a, b);
}
template <int n>
void wgmma_scores(float (&d)[n], unsigned long long a, unsigned long long b) {
    emulated::gpu::product(d, 2 * n, nullptr, a, b, false, false);
}
template <int n>
void wgmma_scores_fresh(float (&d)[n], unsigned long long a, unsigned long long b) {
    emulated::gpu::product(d, 2 * n, nullptr, a, b, true, false);
}
template <int n>
void wgmma_scores_first(float (&d)[n], unsigned long long a, unsigned long long b) {
    emulated::gpu::product(d, 2 * n, nullptr, a, b, true, false);
}
template <int n>
void wgmma_output(float (&d)[n], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned long long b) {
    unsigned a[4] = {a0, a1, a2, a3};
    emulated::gpu::product(d, 2 * n, a, 0, b, false, true);
}
template <int n>
void wgmma_queries(float (&d)[n], unsigned long long a, unsigned long long b) {
    emulated::gpu::product(d, 2 * n, nullptr, a, b, false, true);
}
template <int n>
void wgmma_queries_first(float (&d)[n], unsigned long long a, unsigned long long b) {
    emulated::gpu::product(d, 2 * n, nullptr, a, b, true, true);
}

}  // namespace tilewright::kernel
