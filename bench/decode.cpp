// The functions of decode.h over the runtime.
#include "bench/decode.h"

#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "bench/last_error.h"
#include "tilewright/attention.h"

namespace {

using namespace tilewright;

struct Call {
    Attention& attention;
    Problem problem;
    DecodeTensors tensors;
};
// Never destroyed: the driver may be gone before static destructors run.
std::mutex mutex;
auto& attentions = *new std::list<Attention>;
auto& calls = *new std::list<Call>;

InputTensor input(const TilewrightBenchTensor& t) { return {t.address, t.batch, t.head, t.row, 1}; }

Result<Call> make_call(Attention& attention, const char* text, const TilewrightBenchDecode& given) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Problem problem, parse_problem(text));
    DecodeTensors t;
    t.query = input(given.query), t.key = input(given.key), t.value = input(given.value);
    t.out = {given.out.address, given.out.batch, given.out.head, given.out.row, 1};
    t.lengths = given.lengths, t.block_table = given.block_table;
    t.table_stride = given.table_stride, t.page_size = given.page_size, t.pages = given.pages, t.splits = static_cast<int>(given.splits);
    TILEWRIGHT_ASSIGN_OR_RETURN(t.workspace_bytes, attention.decode_workspace_bytes(problem, t.splits));
    if (t.workspace_bytes > 0) {
        std::vector<char> zeros(static_cast<size_t>(t.workspace_bytes));
        TILEWRIGHT_ASSIGN_OR_RETURN(t.workspace, attention.allocate(t.workspace_bytes));
        TILEWRIGHT_RETURN_IF_ERROR(attention.copy_to_device(t.workspace, zeros.data(), t.workspace_bytes));
    }
    return Call{attention, problem, t};
}

}  // namespace

void* tilewright_bench_attention(int index) {
    AttentionOptions options;
    options.device = "nvidia:" + std::to_string(index);
    options.database.use_user = options.database.use_system = false;
    Result<Attention> opened = Attention::open(options);
    if (!opened.ok()) return bench::fail(opened.status());
    std::lock_guard lock(mutex);
    return &attentions.emplace_back(*std::move(opened));
}

void* tilewright_bench_decode_call(void* attention, const char* problem, const TilewrightBenchDecode* tensors) {
    Result<Call> call = make_call(*static_cast<Attention*>(attention), problem, *tensors);
    if (!call.ok()) return bench::fail(call.status());
    std::lock_guard lock(mutex);
    return &calls.emplace_back(*std::move(call));
}

int tilewright_bench_decode_run(void* const* all, int count, int launches, void* stream) {
    for (int i = 0; i < launches; ++i) {
        Call& call = *static_cast<Call*>(all[i % count]);
        if (Status status = call.attention.decode(call.problem, call.tensors, stream); !status.ok()) {
            bench::fail(status);
            return 1;
        }
    }
    return 0;
}
