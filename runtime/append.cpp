// Appending to a cache: check what was given, launch.
#include <algorithm>

#include "runtime/attention_state.h"
#include "runtime/tensor_checks.h"

namespace tilewright {
namespace {

constexpr int64_t countable = int64_t{1} << 31;

Status check_sizes(const Problem& p, const AppendTensors& t) {
    if (t.rows < 0 || t.rows > p.seq_kv)
        return invalid_argument("rows is " + std::to_string(t.rows) + "; it must be from 0 to seq_kv, " + std::to_string(p.seq_kv));
    if (int64_t blocks = p.batch * p.heads_kv * kernel::append_runs(static_cast<int>(t.rows)); blocks >= countable)
        return invalid_argument("batch * heads_kv * rows / 16 is " + std::to_string(blocks) + "; it must be below " + std::to_string(countable));
    if (!t.lengths && p.batch > 0) return invalid_argument("lengths is null, but there are " + std::to_string(p.batch) + " sequences");
    return check_pages(p, t.block_table, t.page_size, t.table_stride, t.pages);
}

// Where the host can read them.
Status check_places(const AppendTensors& t, int64_t batch, int64_t capacity) {
    for (int64_t i = 0; i < batch; ++i) {
        int64_t length = t.lengths[i], count = t.counts ? t.counts[i] : t.rows;
        std::string what = "sequence " + std::to_string(i) + " has " + std::to_string(length) + " keys and " + std::to_string(count) + " new ones; ";
        if (length < 0 || count < 0 || count > t.rows) return invalid_argument(what + "neither may be negative, and there are " + std::to_string(t.rows) + " new rows");
        if (length + count > capacity) return invalid_argument(what + "the cache has place for " + std::to_string(capacity));
        if (!t.block_table) continue;
        for (int64_t place = length / t.page_size; place * t.page_size < length + count && count > 0; ++place)
            if (int32_t page = t.block_table[i * t.table_stride + place]; page < 0 || page >= t.pages)
                return invalid_argument("sequence " + std::to_string(i) + ": its page " + std::to_string(place) + " is " + std::to_string(page) + "; the cache has pages 0 to " +
                                        std::to_string(t.pages - 1));
    }
    return {};
}

}  // namespace

Status Attention::append(const Problem& p, const AppendTensors& t, void* stream) {
    TILEWRIGHT_RETURN_IF_ERROR(validate(p));
    if (p.operation != Operation::decode) return {StatusCode::unsupported, "append() is for the cache of decode problems, not " + to_text(p)};
    TILEWRIGHT_RETURN_IF_ERROR(check_sizes(p, t));
    const DeviceInfo& device = state_->device->info();
    int64_t kv_rows = t.block_table ? std::min(t.page_size, p.seq_kv) : p.seq_kv, batch = t.block_table ? t.pages : p.batch;
    const Extent tensors[] = {
        extent("key", t.key, p.batch, p.heads_kv, t.rows, p.head_dim), extent("value", t.value, p.batch, p.heads_kv, t.rows, p.head_dim_v),
        extent("key_cache", t.key_cache, batch, p.heads_kv, kv_rows, p.head_dim), extent("value_cache", t.value_cache, batch, p.heads_kv, kv_rows, p.head_dim_v)};
    KernelSpec spec;
    spec.kind = KernelKind::append;
    spec.problem.dtype = p.dtype, spec.problem.head_dim = p.head_dim, spec.problem.head_dim_v = p.head_dim_v;
    spec.paged = t.block_table != nullptr;
    for (const Extent& tensor : tensors) {
        TILEWRIGHT_RETURN_IF_ERROR(check_extent(tensor));
        spec.aligned = spec.aligned && is_aligned(tensor, static_cast<int64_t>(size_of(p.dtype)));
    }
    if (p.batch * t.rows == 0) return {};
    int64_t capacity = t.block_table ? std::min(p.seq_kv, t.table_stride * t.page_size) : p.seq_kv;
    if (device.arch.family == Family::cpu) TILEWRIGHT_RETURN_IF_ERROR(check_places(t, p.batch, capacity));

    kernel::AppendParameters parameters{};
    parameters.key = t.key.data, parameters.value = t.value.data, parameters.key_cache = t.key_cache.data, parameters.value_cache = t.value_cache.data;
    parameters.key_strides = strides_of(tensors[0]), parameters.value_strides = strides_of(tensors[1]);
    parameters.key_cache_strides = strides_of(tensors[2]), parameters.value_cache_strides = strides_of(tensors[3]);
    parameters.lengths = t.lengths, parameters.counts = t.counts, parameters.block_table = t.block_table, parameters.table_stride = t.table_stride;
    parameters.page_shift = page_shift(t.page_size), parameters.pages = static_cast<int>(t.pages);
    parameters.batch = static_cast<int>(p.batch), parameters.heads_kv = static_cast<int>(p.heads_kv);
    parameters.rows = static_cast<int>(t.rows), parameters.capacity = static_cast<int>(capacity);
    parameters.status = t.status;
    TILEWRIGHT_ASSIGN_OR_RETURN(Kernel * kernel, state_->kernels.get(spec));
    return state_->device->launch(*kernel, parameters, stream);
}

}  // namespace tilewright
