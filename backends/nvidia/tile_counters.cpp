// Counters in chunks of device memory, zeroed on a stream of their own.
#include "backends/nvidia/tile_counters.h"

namespace tilewright::nvidia {
namespace {

constexpr unsigned long long default_stream_id = ~0ull;  // the driver counts from 0
constexpr size_t chunk_bytes = TileCounters::counters_per_chunk * sizeof(unsigned);

}  // namespace

Status TileCounters::reserve() {
    std::lock_guard lock(mutex_);
    return used_ == counters_per_chunk ? grow() : Status();
}

Result<unsigned*> TileCounters::counter(Stream stream) {
    unsigned long long id = default_stream_id;
    if (stream) {  // the default stream cannot be captured
        int capturing = 0;
        TILEWRIGHT_RETURN_IF_ERROR(driver_.is_capturing(stream, &capturing));
        if (capturing) {
            std::lock_guard lock(mutex_);
            return next();
        }
        TILEWRIGHT_RETURN_IF_ERROR(driver_.stream_id(stream, &id));
    }
    std::lock_guard lock(mutex_);
    unsigned*& known = of_stream_[id];
    if (!known) {
        auto fresh = next();
        if (!fresh.ok()) return fresh;
        known = *fresh;
    }
    return known;
}

Result<unsigned*> TileCounters::next() {
    if (used_ == counters_per_chunk) TILEWRIGHT_RETURN_IF_ERROR(grow());
    return reinterpret_cast<unsigned*>(chunks_.back()) + used_++;
}

Status TileCounters::grow() {
    DevicePointer chunk = 0;
    Stream stream = nullptr;
    Status status = in_relaxed_capture_mode(driver_, [&]() -> Status {
        TILEWRIGHT_RETURN_IF_ERROR(driver_.allocate(&chunk, chunk_bytes));
        TILEWRIGHT_RETURN_IF_ERROR(driver_.create_stream(&stream, stream_nonblocking));
        TILEWRIGHT_RETURN_IF_ERROR(driver_.fill(chunk, (unsigned char)0, chunk_bytes, stream));
        return driver_.synchronize_stream(stream);
    });
    if (stream)
        if (Status destroyed = driver_.destroy_stream(stream); status.ok()) status = destroyed;
    if (chunk) chunks_.push_back(chunk);  // also after a failure: release() frees it
    if (status.ok()) used_ = 0;
    return status;
}

Status TileCounters::release() {
    std::lock_guard lock(mutex_);
    Status first;
    for (DevicePointer chunk : chunks_)
        if (Status freed = driver_.free(chunk); first.ok()) first = freed;
    chunks_.clear(), of_stream_.clear();
    return first;
}

}  // namespace tilewright::nvidia
