// A problem as compact text, and back.
#include <charconv>
#include <set>

#include "tilewright/problem.h"

namespace tilewright {
namespace {

struct NumberPart {
    const char* prefix;
    int64_t Problem::*member;
};
// Longer prefixes first: "hkv8" is not h = "kv8", "dv64" is not d = "v64".
constexpr NumberPart number_parts[] = {{"page", &Problem::page_size}, {"seed", &Problem::length_seed}, {"hkv", &Problem::heads_kv},
                                       {"skv", &Problem::seq_kv},     {"hq", &Problem::heads_q},       {"sq", &Problem::seq_q},
                                       {"dv", &Problem::head_dim_v},  {"b", &Problem::batch},          {"d", &Problem::head_dim}};

struct FlagPart {
    const char* text;
    bool Problem::*member;
};
constexpr FlagPart flag_parts[] = {{"softcap", &Problem::softcap}, {"bias", &Problem::bias}, {"alibi", &Problem::alibi}, {"sink", &Problem::sink}};

struct OperationName {
    const char* text;
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

// "skv=loguniform(<shortest>,<longest>)"
constexpr std::string_view lengths_prefix = "skv=loguniform(";
bool parse_lengths(std::string_view text, Problem& problem) {
    if (!text.starts_with(lengths_prefix) || !text.ends_with(')')) return false;
    text = text.substr(lengths_prefix.size(), text.size() - lengths_prefix.size() - 1);
    size_t comma = text.find(',');
    return comma != text.npos && parse_number(text.substr(0, comma), problem.shortest_kv) && parse_number(text.substr(comma + 1), problem.seq_kv);
}

enum class Parsed { yes, no, malformed };
// Recognises one part; `kind` tells parts apart that may not be repeated.
Parsed parse_part(std::string_view part, Problem& problem, std::string& kind) {
    if (Result<DType> dtype = parse_dtype(part); dtype.ok()) {
        kind = "dtype", problem.dtype = *dtype;
        return Parsed::yes;
    }
    for (const FlagPart& flag : flag_parts)
        if (part == flag.text) {
            kind = part, problem.*flag.member = true;
            return Parsed::yes;
        }
    if (part == "causal" || part.starts_with("window")) {
        kind = "mask";
        if (part != "causal") return parse_window(part.substr(6), problem) ? Parsed::yes : Parsed::malformed;
        problem.window_left = -1, problem.window_right = 0;
        return Parsed::yes;
    }
    if (part.starts_with("skv=")) {
        kind = "skv";
        return parse_lengths(part, problem) ? Parsed::yes : Parsed::malformed;
    }
    if (part == "topleft") {
        kind = part, problem.alignment = Alignment::top_left;
        return Parsed::yes;
    }
    for (const NumberPart& number : number_parts)
        if (std::string_view prefix = number.prefix; part.starts_with(prefix) && part.size() > prefix.size() &&
                                                     (part[prefix.size()] == '-' || (part[prefix.size()] >= '0' && part[prefix.size()] <= '9'))) {
            kind = prefix;
            return parse_number(part.substr(prefix.size()), problem.*number.member) ? Parsed::yes : Parsed::malformed;
        }
    return Parsed::no;
}

Status parse_parts(std::string_view parts, Problem& problem, std::set<std::string>& seen) {
    while (!parts.empty()) {
        size_t comma = std::min(parts.find(',', parts.starts_with(lengths_prefix) ? std::min(parts.find(')'), parts.size()) : 0), parts.size());
        std::string part(parts.substr(0, comma)), kind;
        parts.remove_prefix(std::min(comma + 1, parts.size()));
        switch (parse_part(part, problem, kind)) {
            case Parsed::no:
                return invalid_argument("unknown part '" + part +
                                        "' in the problem text; known are b hq hkv sq skv d dv with a number, fp32 fp16 bf16, causal, window<left>:<right>, "
                                        "topleft, softcap, bias, alibi, sink; of decode also page and seed with a number, skv=loguniform(<shortest>,<longest>)");
            case Parsed::malformed:
                return invalid_argument("malformed part '" + part + "' in the problem text");
            case Parsed::yes:
                break;
        }
        if (!seen.insert(kind).second) return invalid_argument("part '" + part + "' repeats '" + kind + "' in the problem text");
    }
    return {};
}

}  // namespace

std::string to_text(const Problem& problem) {
    std::string text;
    for (const OperationName& operation : operations)
        if (operation.operation == problem.operation) text = operation.text;
    auto part = [&](const char* prefix, int64_t value) { text += ',' + std::string(prefix) + std::to_string(value); };
    text += ":b" + std::to_string(problem.batch);
    part("hq", problem.heads_q), part("hkv", problem.heads_kv), part("sq", problem.seq_q);
    if (problem.shortest_kv == -1) part("skv", problem.seq_kv);
    else text += ',' + std::string(lengths_prefix) + std::to_string(problem.shortest_kv) + ',' + std::to_string(problem.seq_kv) + ')';
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

Result<Problem> parse_problem(std::string_view text) {
    Problem problem;
    size_t colon = std::min(text.find(':'), text.size());
    std::string operation(text.substr(0, colon));
    bool known = false;
    for (const OperationName& candidate : operations)
        if (operation == candidate.text) problem.operation = candidate.operation, known = true;
    if (!known) return invalid_argument("unknown operation '" + operation + "' in the problem text; known are forward, backward, decode");
    std::set<std::string> seen;
    TILEWRIGHT_RETURN_IF_ERROR(parse_parts(text.substr(std::min(colon + 1, text.size())), problem, seen));
    if (!seen.contains("hkv")) problem.heads_kv = problem.heads_q;
    if (!seen.contains("skv")) problem.seq_kv = problem.seq_q;
    if (!seen.contains("dv")) problem.head_dim_v = problem.head_dim;
    TILEWRIGHT_RETURN_IF_ERROR(validate(problem));
    return problem;
}

}  // namespace tilewright
