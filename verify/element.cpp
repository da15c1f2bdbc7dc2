// Element types on the host.
#include "verify/element.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tilewright {
namespace {

struct Format {
    int mantissa_bits;      // stored ones
    double smallest_normal;
    double smallest;        // subnormal
    double largest;
};
constexpr Format bf16_format{7, 0x1p-126, 0x1p-133, 0x1.fep127};
constexpr Format fp16_format{10, 0x1p-14, 0x1p-24, 0x1.ffcp15};

// To nearest even, once, from the double's own bits: going through float would round twice.
double round_to_format(double value, const Format& format) {
    if (!std::isfinite(value)) return value;
    if (std::abs(value) < format.smallest_normal) return std::nearbyint(value / format.smallest) * format.smallest;
    int dropped = 52 - format.mantissa_bits;
    uint64_t bits = std::bit_cast<uint64_t>(value), unit = uint64_t{1} << dropped;
    bits += unit / 2 - 1 + ((bits >> dropped) & 1);
    double rounded = std::bit_cast<double>(bits & ~(unit - 1));
    return std::abs(rounded) > format.largest ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

float decode_fp16(uint16_t bits) {
    uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    if (exponent == 0) return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(float(mantissa) * 0x1p-24f));
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

// `value` is an fp16 value already.
uint16_t encode_fp16(double value) {
    uint32_t bits = std::bit_cast<uint32_t>(float(value)), sign = bits >> 16 & 0x8000;
    if (std::isnan(value)) return uint16_t(sign | 0x7e00);
    if (std::isinf(value)) return uint16_t(sign | 0x7c00);
    if (std::abs(value) < 0x1p-14) return uint16_t(sign | uint32_t(std::abs(value) * 0x1p24));
    return uint16_t(sign | ((bits & 0x7fffffff) - (112u << 23)) >> 13);
}

float decode_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
float decode_fp32(uint32_t bits) { return std::bit_cast<float>(bits); }

template <class Bits, float decode(Bits)>
void decode_all(const void* first, int64_t stride, int64_t count, float* to) {
    const auto* from = static_cast<const unsigned char*>(first);
    for (int64_t i = 0; i < count; ++i) {
        Bits bits;
        std::memcpy(&bits, from + i * stride * int64_t(sizeof bits), sizeof bits);
        to[i] = decode(bits);
    }
}

}  // namespace

void load_elements(DType dtype, const void* first, int64_t stride, int64_t count, float* to) {
    switch (dtype) {
        case DType::fp32: return decode_all<uint32_t, decode_fp32>(first, stride, count, to);
        case DType::fp16: return decode_all<uint16_t, decode_fp16>(first, stride, count, to);
        case DType::bf16: return decode_all<uint16_t, decode_bf16>(first, stride, count, to);
    }
}

double load_element(DType dtype, const void* address) {
    float value = 0;
    load_elements(dtype, address, 1, 1, &value);
    return value;
}

double round_to(DType dtype, double value) {
    if (dtype == DType::fp32) return float(value);
    return round_to_format(value, dtype == DType::bf16 ? bf16_format : fp16_format);
}

void store_element(DType dtype, void* address, double value) {
    if (dtype == DType::fp32) {
        float rounded = float(value);
        std::memcpy(address, &rounded, sizeof rounded);
        return;
    }
    double rounded = round_to(dtype, value);
    uint16_t bits = dtype == DType::fp16 ? encode_fp16(rounded) : uint16_t(std::bit_cast<uint32_t>(float(rounded)) >> 16);
    std::memcpy(address, &bits, sizeof bits);
}

double largest_finite(DType dtype) {
    return dtype == DType::fp32 ? std::numeric_limits<float>::max() : dtype == DType::bf16 ? bf16_format.largest : fp16_format.largest;
}

double epsilon(DType dtype) { return dtype == DType::fp32 ? 0x1p-23 : dtype == DType::bf16 ? 0x1p-7 : 0x1p-10; }

}  // namespace tilewright
