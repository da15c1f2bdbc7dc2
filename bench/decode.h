// C functions with which a script measures decode calls of the public interface, on tensors that it owns. Failures as in bench.h.
#pragma once
#include "bench/bench.h"

// The NVIDIA device of that index, without tuning databases; stays open until the process ends.
TILEWRIGHT_BENCH_API void* tilewright_bench_attention(int index);

struct TilewrightBenchDecode {
    TilewrightBenchTensor query, key, value, out;  // as DecodeTensors has them
    const int32_t *lengths, *block_table;          // null: there are none
    int64_t table_stride, page_size, pages;
    int64_t splits;
};
// A call on these tensors, with a workspace of its own. Lives until the process ends.
TILEWRIGHT_BENCH_API void* tilewright_bench_decode_call(void* attention, const char* problem, const TilewrightBenchDecode* tensors);
// `launches` calls, in turns through the `count` given. Asynchronous on `stream`.
TILEWRIGHT_BENCH_API int tilewright_bench_decode_run(void* const* calls, int count, int launches, void* stream);
