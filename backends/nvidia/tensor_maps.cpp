// Encodes tensor maps and remembers them.
#include "backends/nvidia/tensor_maps.h"

#include <cstring>

namespace tilewright::nvidia {
namespace {

constexpr int data_type_fp16 = 6, data_type_bf16 = 9, interleave_none = 0, swizzle_128b = 3, promotion_256b = 3, fill_zeros = 0;  // cuda.h
constexpr int promotion_none = 0;

size_t hash_of(const void* address, const kernel::TensorMapShape& shape) {
    uint64_t hash = reinterpret_cast<uintptr_t>(address);
    auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15ull, hash ^= hash >> 29; };
    for (int i = 0; i < shape.rank; ++i) mix(shape.dims[i]), mix(shape.box[i]);
    for (int i = 0; i + 1 < shape.rank; ++i) mix(shape.strides[i]);
    return hash;
}

// Field by field: structs may have padding.
bool same(const kernel::TensorMapShape& a, const kernel::TensorMapShape& b) {
    return a.rank == b.rank && std::memcmp(a.dims, b.dims, sizeof a.dims) == 0 && std::memcmp(a.strides, b.strides, sizeof a.strides) == 0 &&
           std::memcmp(a.box, b.box, sizeof a.box) == 0 && a.promotion_bytes == b.promotion_bytes;
}

}  // namespace

Status TensorMaps::get(const char* operand, const void* address, DType dtype, const kernel::TensorMapShape& shape, kernel::TensorMap& map) {
    Entry& entry = entries_[hash_of(address, shape) % entries_.size()];
    std::lock_guard lock(mutex_);
    if (!entry.address || entry.address != address || entry.dtype != dtype || !same(entry.shape, shape)) {
        kernel::TensorMap fresh;
        TILEWRIGHT_RETURN_IF_ERROR(encode(operand, address, dtype, shape, fresh));
        entry = {address, dtype, shape, fresh};
    }
    map = entry.map;
    return {};
}

Status TensorMaps::encode(const char* operand, const void* address, DType dtype, const kernel::TensorMapShape& shape, kernel::TensorMap& map) const {
    for (int i = 0; i + 1 < shape.rank; ++i)
        if (auto stride = (long long)shape.strides[i]; stride < 0)
            return invalid_argument(std::string(operand) + ": a stride is " + std::to_string(stride) +
                                    " bytes; the copy engine needs strides from 0 on (KernelSpec::aligned = false is for tensors without)");
    unsigned ones[5] = {1, 1, 1, 1, 1};
    int type = dtype == DType::fp16 ? data_type_fp16 : data_type_bf16;
    Status encoded = driver_.encode_tensor_map(&map, type, (unsigned)shape.rank, const_cast<void*>(address), shape.dims, shape.strides, shape.box, ones,
                                               interleave_none, swizzle_128b, shape.promotion_bytes == 256 ? promotion_256b : promotion_none, fill_zeros);
    if (encoded.ok()) return encoded;
    return {encoded.code(), std::string(operand) + ": " + encoded.message()};
}

}  // namespace tilewright::nvidia
