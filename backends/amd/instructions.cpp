// The encodings of the CDNA 3, RDNA 3 and RDNA 4 instruction set manuals, chapter "Microcode Formats", as tables.
#include "backends/amd/instructions.h"

#include <cstdio>
#include <cstring>
#include <span>

namespace tilewright::amd {
namespace {

// What may lie behind the first words of an instruction.
enum class Extra {
    none,
    scalar1,  // a literal, if the one scalar source says so
    scalar2,  // ... if either of two does
    scalark,  // ... if it is s_setreg_imm32_b32
    vector,   // a literal, SDWA or DPP word, if the first vector source says so
    vector2,  // ... or always, for the multiply-adds with a literal
    vop3,     // ... if one of three sources says so (not in CDNA)
    dual,     // a literal, if either half of a dual instruction wants one
};

enum class Unit { scalar, program, vector, vector1, vector3, packed, lds, flat, buffer, scalar_memory, other };

struct Format {
    uint32_t mask, value;  // of the first word
    int words;
    Extra extra;
    Unit unit;
};

constexpr uint32_t top(int bits) { return ~uint32_t{0} << (32 - bits); }
constexpr Format format(uint32_t prefix, int bits, int words, Extra extra, Unit unit) { return {top(bits), prefix << (32 - bits), words, extra, unit}; }

// The first that matches counts: longer prefixes stand before the shorter ones that hold them.
constexpr Format cdna_formats[] = {
    format(0b101111111, 9, 1, Extra::none, Unit::program),    format(0b101111110, 9, 1, Extra::scalar2, Unit::scalar),
    format(0b101111101, 9, 1, Extra::scalar1, Unit::scalar),  format(0b1011, 4, 1, Extra::scalark, Unit::scalar),
    format(0b10, 2, 1, Extra::scalar2, Unit::scalar),         format(0b0111111, 7, 1, Extra::vector, Unit::vector1),
    format(0b0111110, 7, 1, Extra::vector, Unit::vector),     format(0b0, 1, 1, Extra::vector2, Unit::vector),
    format(0b110100111, 9, 2, Extra::none, Unit::packed),     format(0b110100, 6, 2, Extra::none, Unit::vector3),
    format(0b110110, 6, 2, Extra::none, Unit::lds),           format(0b110111, 6, 2, Extra::none, Unit::flat),
    format(0b111000, 6, 2, Extra::none, Unit::buffer),        format(0b111010, 6, 2, Extra::none, Unit::other),
    format(0b110000, 6, 2, Extra::none, Unit::scalar_memory),
};
constexpr Format rdna3_formats[] = {
    format(0b101111111, 9, 1, Extra::none, Unit::program),   format(0b101111110, 9, 1, Extra::scalar2, Unit::scalar),
    format(0b101111101, 9, 1, Extra::scalar1, Unit::scalar), format(0b1011, 4, 1, Extra::scalark, Unit::scalar),
    format(0b10, 2, 1, Extra::scalar2, Unit::scalar),        format(0b0111111, 7, 1, Extra::vector, Unit::vector1),
    format(0b0111110, 7, 1, Extra::vector, Unit::vector),    format(0b0, 1, 1, Extra::vector2, Unit::vector),
    format(0b11001100, 8, 2, Extra::vop3, Unit::packed),     format(0b11001101, 8, 2, Extra::none, Unit::other),
    format(0b11001110, 8, 1, Extra::none, Unit::other),      format(0b110010, 6, 2, Extra::dual, Unit::vector),
    format(0b110101, 6, 2, Extra::vop3, Unit::vector3),      format(0b110110, 6, 2, Extra::none, Unit::lds),
    format(0b110111, 6, 2, Extra::none, Unit::flat),         format(0b111000, 6, 2, Extra::none, Unit::buffer),
    format(0b111010, 6, 2, Extra::none, Unit::other),        format(0b111101, 6, 2, Extra::none, Unit::scalar_memory),
    format(0b111110, 6, 2, Extra::none, Unit::other),
};
constexpr Format rdna4_formats[] = {
    format(0b101111111, 9, 1, Extra::none, Unit::program),    format(0b101111110, 9, 1, Extra::scalar2, Unit::scalar),
    format(0b101111101, 9, 1, Extra::scalar1, Unit::scalar),  format(0b1011, 4, 1, Extra::scalark, Unit::scalar),
    format(0b10, 2, 1, Extra::scalar2, Unit::scalar),         format(0b0111111, 7, 1, Extra::vector, Unit::vector1),
    format(0b0111110, 7, 1, Extra::vector, Unit::vector),     format(0b0, 1, 1, Extra::vector2, Unit::vector),
    format(0b11001100, 8, 2, Extra::vop3, Unit::packed),      format(0b11001101, 8, 2, Extra::none, Unit::other),
    format(0b11001110, 8, 1, Extra::none, Unit::other),       format(0b110010, 6, 2, Extra::dual, Unit::vector),
    format(0b110101, 6, 2, Extra::vop3, Unit::vector3),       format(0b110110, 6, 2, Extra::none, Unit::lds),
    format(0b111011, 6, 3, Extra::none, Unit::flat),          format(0b110001, 6, 3, Extra::none, Unit::buffer),
    format(0b111101, 6, 2, Extra::none, Unit::scalar_memory), format(0b111110, 6, 2, Extra::none, Unit::other),
};

// Opcodes that a family gives its own numbers.
struct Numbers {
    std::span<const Format> formats;
    uint32_t setreg_literal;   // s_setreg_imm32_b32
    uint32_t multiply_add[4];  // v_fmamk, v_fmaak of both widths: a literal follows
    uint32_t sdwa;             // the source that announces an SDWA word; 0: no such thing
    uint32_t exponential;      // v_exp_f32 in its short form ...
    uint32_t exponential3;     // ... and in the long one, which has modifiers
    int lds_opcode_shift;
    std::span<const uint32_t> exchanges;  // LDS opcodes that touch no memory
};

constexpr uint32_t cdna_exchanges[] = {61, 62, 63};    // ds_swizzle, ds_permute, ds_bpermute
constexpr uint32_t rdna_exchanges[] = {53, 178, 179};  // the same
constexpr Numbers cdna{cdna_formats, 20, {23, 24, 36, 37}, 249, 32, 0x160, 17, cdna_exchanges};
constexpr Numbers rdna3{rdna3_formats, 19, {44, 45, 55, 56}, 0, 37, 0x1a5, 18, rdna_exchanges};
constexpr Numbers rdna4{rdna4_formats, 19, {44, 45, 55, 56}, 0, 37, 0x1a5, 18, rdna_exchanges};

constexpr uint32_t literal_source = 255, dpp16 = 250, dpp8 = 233, dpp8_fetch_inactive = 234;

uint32_t bits(uint32_t word, int low, int count) { return word >> low & ((uint32_t{1} << count) - 1); }

// Behind the last instruction the compiler puts s_code_end or s_nop, for the instruction prefetch, or zeros.
std::string_view without_padding(std::string_view code) {
    while (code.size() >= 4) {
        uint32_t last;
        memcpy(&last, code.data() + code.size() - 4, 4);
        bool code_end = last == 0xbf9f0000, nop = last == 0xbf800000;
        if (!code_end && !nop && last != 0) break;
        code.remove_suffix(4);
    }
    return code;
}

class Decoder {
public:
    Decoder(std::string_view code, Family family)
        : code_(without_padding(code)),
          family_(family),
          numbers_(family == Family::cdna    ? cdna
                   : family == Family::rdna3 ? rdna3
                                             : rdna4) {}

    Result<InstructionCounts> count() {
        while (at_ + 4 <= code_.size()) {
            const Format* found = find_format();
            if (!found) {
                char text[96];
                snprintf(text, sizeof text, "unknown instruction %08x at byte %zu of the kernel", word(0), at_);
                return Status(StatusCode::unsupported, text);
            }
            ++counts_.total;
            add(*found);
            at_ += 4 * static_cast<size_t>(found->words + extra_words(*found));
        }
        return counts_;
    }

private:
    uint32_t word(int index) const {
        uint32_t value = 0;
        size_t at = at_ + 4 * static_cast<size_t>(index);
        if (at + 4 <= code_.size()) memcpy(&value, code_.data() + at, 4);
        return value;
    }
    uint32_t opcode(int low, int count) const { return bits(word(0), low, count); }

    const Format* find_format() const {
        for (const Format& format : numbers_.formats)
            if ((word(0) & format.mask) == format.value) return &format;
        return nullptr;
    }

    int extra_words(const Format& format) const {
        auto literal = [](uint32_t source) { return source == literal_source; };
        uint32_t first = bits(word(0), 0, 9);
        auto announced = [&](uint32_t source) {
            return literal(source) || source == dpp16 || (numbers_.sdwa ? source == numbers_.sdwa : source == dpp8 || source == dpp8_fetch_inactive);
        };
        switch (format.extra) {
            case Extra::none:
                return 0;
            case Extra::scalar1:
                return literal(bits(word(0), 0, 8));
            case Extra::scalar2:
                return literal(bits(word(0), 0, 8)) || literal(bits(word(0), 8, 8));
            case Extra::scalark:
                return opcode(23, 5) == numbers_.setreg_literal;
            case Extra::vector:
                return announced(first);
            case Extra::vector2:
                for (uint32_t number : numbers_.multiply_add)
                    if (opcode(25, 6) == number) return 1;
                return announced(first);
            case Extra::vop3:
                return announced(bits(word(1), 0, 9)) || literal(bits(word(1), 9, 9)) || literal(bits(word(1), 18, 9));
            case Extra::dual: {
                constexpr uint32_t fmaak = 1, fmamk = 2;
                uint32_t x = bits(word(0), 22, 4), y = bits(word(0), 17, 5);
                return x == fmaak || x == fmamk || y == fmaak || y == fmamk || literal(first) || literal(bits(word(1), 0, 9));
            }
        }
        return 0;
    }

    void add(const Format& format) {
        switch (format.unit) {
            case Unit::program:
                return add_program(opcode(16, 7));
            case Unit::scalar:
                if (family_ == Family::rdna3 && opcode(28, 4) == 0b1011 && opcode(23, 5) >= 24 && opcode(23, 5) <= 27) ++counts_.wait;  // s_waitcnt_vscnt ...
                return;
            case Unit::vector1:
                counts_.exponential += opcode(9, 8) == numbers_.exponential;
                return;
            case Unit::vector3:
                counts_.exponential += opcode(16, 10) == numbers_.exponential3;
                return;
            case Unit::packed:
                return add_packed(opcode(16, 7));
            case Unit::lds: {
                uint32_t number = opcode(numbers_.lds_opcode_shift, 8);
                for (uint32_t exchange : numbers_.exchanges)
                    if (number == exchange) return void(++counts_.lane_exchange);
                ++counts_.lds;
                return;
            }
            case Unit::flat: {
                int segment = static_cast<int>(family_ == Family::cdna ? opcode(14, 2) : family_ == Family::rdna3 ? opcode(16, 2) : opcode(24, 2));
                constexpr int scratch = 1;
                if (segment == scratch) return void(++counts_.scratch);
                return add_flat(family_ == Family::rdna4 ? opcode(14, 8) : opcode(18, 7));
            }
            case Unit::buffer:
                return add_buffer(family_ == Family::rdna4 ? opcode(14, 8) : opcode(18, family_ == Family::cdna ? 7 : 8));
            case Unit::scalar_memory:
                counts_.scalar_load += is_scalar_load();
                return;
            default:
                return;
        }
    }

    void add_memory(bool load) { load ? ++counts_.global_load : ++counts_.global_store; }

    void add_program(uint32_t number) {
        if (family_ == Family::cdna) {
            counts_.wait += number == 12, counts_.barrier += number == 10;
        } else if (family_ == Family::rdna3) {
            counts_.wait += number == 9, counts_.barrier += number == 61;
        } else {
            counts_.wait += number >= 64 && number <= 73, counts_.barrier += number == 20;  // s_wait_loadcnt ...; s_barrier_wait
        }
    }

    void add_packed(uint32_t number) {
        // gfx950 has some in front of the others: of 8 bits and fewer at 45 and 46, of bf16 and bytes from 53 on.
        constexpr uint32_t first_matrix = 64, accumulator_read = 88, accumulator_write = 89;
        const bool early = family_ == Family::cdna && (within(number, 45, 46) || within(number, 53, first_matrix - 1));
        if (number < first_matrix && !early) return;
        if (family_ == Family::cdna && (number == accumulator_read || number == accumulator_write)) return;
        ++counts_.matrix;
    }

    static bool within(uint32_t number, uint32_t first, uint32_t last) { return number >= first && number <= last; }

    void add_flat(uint32_t number) {
        bool cache_control = family_ == Family::rdna4 && (number == 43 || number == 44 || number == 79);
        if (cache_control) return;
        if (family_ == Family::cdna) return add_memory(within(number, 16, 23) || within(number, 32, 42) || number >= 125);  // with loads to LDS
        add_memory(within(number, 16, 23) || within(number, 30, 35) || number == 40 || (family_ == Family::rdna4 && within(number, 87, 88)));
    }
    void add_buffer(uint32_t number) {
        bool cache_control = family_ == Family::cdna ? number == 40 || number == 41 || number >= 62 : family_ == Family::rdna3 && within(number, 43, 44);
        if (cache_control) return;
        bool formatted = number <= 3 || within(number, 8, 11), plain = within(number, 16, 23);
        add_memory(formatted || plain || (family_ == Family::cdna ? within(number, 32, 38) : within(number, 30, 35) || number == 38 || within(number, 45, 50)));
    }
    bool is_scalar_load() const {
        if (family_ == Family::rdna4) return opcode(13, 6) <= 27;
        return opcode(18, 8) <= 4 || within(opcode(18, 8), 8, 12);
    }

    std::string_view code_;
    Family family_;
    const Numbers& numbers_;
    size_t at_ = 0;
    InstructionCounts counts_;
};

}  // namespace

Result<InstructionCounts> count_instructions(std::string_view code, Family family) {
    if (family != Family::cdna && family != Family::rdna3 && family != Family::rdna4)
        return Status(StatusCode::unsupported, "instructions are counted for AMD families only");
    return Decoder(code, family).count();
}

}  // namespace tilewright::amd
