// A problem as compact text, and back.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>

#include "tilewright/problem.h"

namespace tilewright {
namespace {

// A word as a number, so that comparing costs nothing: its last eight letters. `==` of the texts decides.
constexpr uint64_t key_of(std::string_view word) {
    uint64_t key = 0;
    for (const char letter : word) key = key << 8 | static_cast<unsigned char>(letter);
    return key;
}

struct NumberPart {
    std::string_view prefix;
    int64_t Problem::*member;
    uint64_t key = key_of(prefix);
};
constexpr NumberPart number_parts[] = {{"b", &Problem::batch},    {"hq", &Problem::heads_q}, {"hkv", &Problem::heads_kv},  {"sq", &Problem::seq_q},
                                       {"skv", &Problem::seq_kv}, {"d", &Problem::head_dim}, {"dv", &Problem::head_dim_v},
                                       {"page", &Problem::page_size}, {"seed", &Problem::length_seed}};

struct FlagPart {
    std::string_view text;
    bool Problem::*member;
};
constexpr FlagPart flag_parts[] = {{"softcap", &Problem::softcap}, {"bias", &Problem::bias}, {"alibi", &Problem::alibi}, {"sink", &Problem::sink},
                                   {"deterministic", &Problem::deterministic}, {"packed", &Problem::packed}};

// What may stand in a text once: the number parts, the flags, and these.
enum Kind : size_t { first_flag = std::size(number_parts), dtype_kind = first_flag + std::size(flag_parts), mask_kind, alignment_kind, no_kind };
consteval Kind number_kind(std::string_view prefix) {
    size_t kind = 0;
    while (number_parts[kind].prefix != prefix) ++kind;
    return static_cast<Kind>(kind);
}

struct OperationName {
    std::string_view text;
    Operation operation;
};
constexpr OperationName operations[] = {{"forward", Operation::forward}, {"backward", Operation::backward}, {"decode", Operation::decode}};

bool parse_number(std::string_view text, int64_t& value) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

// "window<left>:<right>", -1 for unbounded.
bool parse_window(std::string_view text, Problem& problem) {
    size_t colon = text.find(':');
    return colon != text.npos && parse_number(text.substr(0, colon), problem.window_left) && parse_number(text.substr(colon + 1), problem.window_right);
}

// "sq=loguniform(<shortest>,<longest>)"
constexpr std::string_view distribution = "=loguniform(";
struct LengthsPart {
    std::string_view prefix;  // of the number part that it stands for
    Kind kind;                // as which it counts
    int64_t Problem::*shortest;
    int64_t Problem::*longest;
};
constexpr LengthsPart lengths_parts[] = {{"sq", number_kind("sq"), &Problem::shortest_q, &Problem::seq_q}, {"skv", number_kind("skv"), &Problem::shortest_kv, &Problem::seq_kv}};

bool parse_lengths(std::string_view text, const LengthsPart& part, Problem& problem) {
    text.remove_prefix(part.prefix.size());
    if (!text.starts_with(distribution) || !text.ends_with(')')) return false;
    text = text.substr(distribution.size(), text.size() - distribution.size() - 1);
    const size_t comma = text.find(',');
    return comma != text.npos && parse_number(text.substr(0, comma), problem.*part.shortest) && parse_number(text.substr(comma + 1), problem.*part.longest);
}

// A part as it is read: the letters that it begins with, what follows them, and which part it turned out to be.
struct Part {
    std::string_view text;
    size_t letters = 0;
    uint64_t key = 0;
    Kind kind = no_kind;

    explicit Part(std::string_view given) : text(given) {
        for (; letters < text.size() && text[letters] != '-' && (text[letters] < '0' || text[letters] > '9'); ++letters)
            key = key << 8 | static_cast<unsigned char>(text[letters]);
    }
    std::string_view word() const { return text.substr(0, letters); }
    std::string_view rest() const { return text.substr(letters); }
};

// Recognises a part and stores what it says; false if it is malformed. Opening a database parses a text for each problem, so
// nothing is allocated here.
bool parse_part(Part& part, Problem& problem) {
    for (size_t i = 0; i < std::size(number_parts) && !part.rest().empty(); ++i)
        if (part.key == number_parts[i].key && part.word() == number_parts[i].prefix) {
            part.kind = static_cast<Kind>(i);
            return parse_number(part.rest(), problem.*number_parts[i].member);
        }
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16})
        if (!part.rest().empty() && part.text == name(dtype)) part.kind = dtype_kind, problem.dtype = dtype;
    for (size_t i = 0; i < std::size(flag_parts); ++i)
        if (part.text == flag_parts[i].text) part.kind = static_cast<Kind>(first_flag + i), problem.*flag_parts[i].member = true;
    if (part.text == "topleft") part.kind = alignment_kind, problem.alignment = Alignment::top_left;
    if (part.text == "causal") part.kind = mask_kind, problem.window_left = -1, problem.window_right = 0;
    for (const LengthsPart& lengths : lengths_parts)
        if (part.text.starts_with(lengths.prefix) && part.text.substr(lengths.prefix.size()).starts_with('=')) {
            part.kind = lengths.kind;
            return parse_lengths(part.text, lengths, problem);
        }
    if (!part.text.starts_with("window")) return true;
    part.kind = mask_kind;
    return parse_window(part.text.substr(6), problem);
}

// `seen`: a bit a kind.
Status parse_parts(std::string_view parts, Problem& problem, unsigned& seen) {
    while (!parts.empty()) {
        size_t comma = parts.find(',');
        if (parts.substr(0, comma).find(distribution) != parts.npos) comma = parts.find(',', std::min(parts.find(')'), parts.size()));
        comma = std::min(comma, parts.size());
        Part part(parts.substr(0, comma));
        parts.remove_prefix(std::min(comma + 1, parts.size()));
        if (!parse_part(part, problem)) return invalid_argument("malformed part '" + std::string(part.text) + "' in the problem text");
        if (part.kind == no_kind)
            return invalid_argument("unknown part '" + std::string(part.text) +
                                    "' in the problem text; known are b hq hkv sq skv d dv with a number, fp32 fp16 bf16, causal, window<left>:<right>, "
                                    "topleft, softcap, bias, alibi, sink; of backward also deterministic; of decode page with a number, of forward and backward packed; "
                                    "of both seed with a number, skv=loguniform(<shortest>,<longest>), of packed sequences sq=loguniform(<shortest>,<longest>)");
        if (seen >> part.kind & 1) {
            const std::string_view what = part.kind == dtype_kind ? "dtype" : part.kind == mask_kind ? "mask" : part.word().substr(0, part.word().find('='));
            return invalid_argument("part '" + std::string(part.text) + "' repeats '" + std::string(what) + "' in the problem text");
        }
        seen |= 1U << part.kind;
    }
    return {};
}

// Sizes and type as to_text() writes them, which is how databases hold them, are read in one go; what follows them is left in `text`.
// False if they are not; the problem then holds some of them.
class CanonicalStart {
public:
    explicit CanonicalStart(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

    bool parse(Problem& p, bool& has_dv) {
        if (!(part("b", p.batch) && part(",hq", p.heads_q) && part(",hkv", p.heads_kv) && part(",sq", p.seq_q) && part(",skv", p.seq_kv) && part(",d", p.head_dim)))
            return false;
        has_dv = part(",dv", p.head_dim_v);
        for (const auto& [text, dtype] : {std::pair(",bf16", DType::bf16), std::pair(",fp16", DType::fp16), std::pair(",fp32", DType::fp32)}) {
            if (static_cast<size_t>(end_ - at_) < 5 || std::memcmp(at_, text, 5) != 0) continue;
            p.dtype = dtype, at_ += 5;
            if (rest() == ",causal") p.window_right = 0, at_ = end_;  // by far the commonest mask
            return at_ == end_ || skip(",");
        }
        return false;
    }
    std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }

private:
    template <size_t size>
    bool skip(const char (&literal)[size]) {
        if (static_cast<size_t>(end_ - at_) < size - 1 || std::memcmp(at_, literal, size - 1) != 0) return false;
        at_ += size - 1;
        return true;
    }
    // Leaves numbers of more digits than any legal one to the general way and its messages.
    template <size_t size>
    bool part(const char (&prefix)[size], int64_t& value) {
        const char* const before = at_;
        if (!skip(prefix)) return false;
        const char* const first = at_;
        for (value = 0; at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - first < 18; ++at_) value = value * 10 + (*at_ - '0');
        if (at_ != first) return true;
        at_ = before;
        return false;
    }

    const char* at_;
    const char* end_;
};

}  // namespace

const char* name(Operation operation) {
    for (const OperationName& known : operations)
        if (known.operation == operation) return known.text.data();  // a literal: ends with 0
    return "unknown";
}

std::string to_text(const Problem& problem) {
    std::string text = name(problem.operation);
    auto part = [&](const char* prefix, int64_t value) { text += ',' + std::string(prefix) + std::to_string(value); };
    text += ":b" + std::to_string(problem.batch);
    part("hq", problem.heads_q), part("hkv", problem.heads_kv);
    for (const LengthsPart& lengths : lengths_parts) {
        text += ',' + std::string(lengths.prefix);
        if (problem.*lengths.shortest != -1) text += std::string(distribution) + std::to_string(problem.*lengths.shortest) + ',';
        text += std::to_string(problem.*lengths.longest);
        if (problem.*lengths.shortest != -1) text += ')';
    }
    part("d", problem.head_dim);
    if (problem.head_dim_v != problem.head_dim) part("dv", problem.head_dim_v);
    text += ',' + std::string(name(problem.dtype));
    if (problem.causal())
        text += ",causal";
    else if (problem.window_left != -1 || problem.window_right != -1)
        text += ",window" + std::to_string(problem.window_left) + ':' + std::to_string(problem.window_right);
    if (problem.alignment == Alignment::top_left) text += ",topleft";
    for (const FlagPart& flag : flag_parts)
        if (problem.*flag.member) text += ',' + std::string(flag.text);
    if (problem.page_size != 0) part("page", problem.page_size);
    if (problem.length_seed != 0) part("seed", problem.length_seed);
    return text;
}

namespace {

Status parse_into(std::string_view text, Problem& problem) {
    const size_t colon = std::min(text.find(':'), text.size());
    const std::string_view operation = text.substr(0, colon);
    bool known = false;
    for (const OperationName& candidate : operations)
        if (operation == candidate.text) problem.operation = candidate.operation, known = true;
    if (!known) return invalid_argument("unknown operation '" + std::string(operation) + "' in the problem text; known are forward, backward, decode");
    std::string_view parts = text.substr(std::min(colon + 1, text.size()));
    unsigned seen = 0;
    bool has_dv = false;
    if (CanonicalStart start(parts); start.parse(problem, has_dv)) {
        parts = start.rest();
        seen = ((1U << number_kind("page")) - 1) | 1U << dtype_kind;
        if (!has_dv) seen ^= 1U << number_kind("dv");
    } else {
        const Operation said = problem.operation;
        problem = {};
        problem.operation = said;
    }
    TILEWRIGHT_RETURN_IF_ERROR(parse_parts(parts, problem, seen));
    const auto given = [&](Kind kind) { return (seen >> kind & 1) != 0; };
    if (!given(number_kind("hkv"))) problem.heads_kv = problem.heads_q;
    if (!given(number_kind("skv"))) problem.seq_kv = problem.seq_q, problem.shortest_kv = problem.shortest_q;
    if (!given(number_kind("dv"))) problem.head_dim_v = problem.head_dim;
    return validate(problem);
}

}  // namespace

Result<Problem> parse_problem(std::string_view text) {
    Result<Problem> parsed{Problem()};
    if (Status status = parse_into(text, *parsed); !status.ok()) parsed = std::move(status);
    return parsed;
}

}  // namespace tilewright
