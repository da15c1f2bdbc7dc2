// Tensor maps for the copy engine, kept so that a repeated launch does not encode them again.
#pragma once
#include <array>
#include <mutex>

#include "backends/nvidia/driver.h"
#include "kernels/arch/sm90_arguments.h"
#include "tilewright/dtype.h"

namespace tilewright::nvidia {

// Thread-safe. A map depends on nothing but the key: it never goes stale.
class TensorMaps {
public:
    explicit TensorMaps(const Driver& driver) : driver_(driver) {}

    // Of 16-bit elements at `address`; address and strides are multiples of 16 bytes. invalid_argument, naming the operand and
    // the value, if a stride is negative; the driver's error where it refuses the map for another reason.
    Status get(const char* operand, const void* address, DType dtype, const kernel::TensorMapShape& shape, kernel::TensorMap& map);

private:
    struct Entry {
        const void* address = nullptr;  // null: free
        DType dtype = DType::bf16;
        kernel::TensorMapShape shape;
        kernel::TensorMap map;
    };
    Status encode(const char* operand, const void* address, DType dtype, const kernel::TensorMapShape& shape, kernel::TensorMap& map) const;

    const Driver& driver_;
    std::mutex mutex_;
    std::array<Entry, 256> entries_;  // by hash; a newer map takes the place of an older one
};

}  // namespace tilewright::nvidia
