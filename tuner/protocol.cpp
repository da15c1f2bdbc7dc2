// Requests and replies as JSON lines.
#include "tuner/protocol.h"

#include <nlohmann/json.hpp>

namespace tilewright {
namespace {

using Json = nlohmann::json;
constexpr const char* action_names[] = {"prepare", "compile", "evaluate", "race", "predict"};

Json to_json(const Timing& timing) { return {timing.median_us, timing.p20_us, timing.p80_us, timing.low_us, timing.high_us, timing.samples}; }
Timing timing_from(const Json& json) { return {json.at(0), json.at(1), json.at(2), json.at(3), json.at(4), json.at(5)}; }

// The text may hold bytes of a crashed program's output: what is no UTF-8 is replaced.
std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string to_line(const WorkerRequest& request) {
    Json configs = Json::array();
    for (const Config& config : request.configs) configs.push_back(to_json(config));
    return line_of({{"action", action_names[static_cast<int>(request.action)]},
                    {"device", request.device},
                    {"problem", to_text(request.problem)},
                    {"configs", configs},
                    {"files", request.files},
                    {"seconds", request.seconds},
                    {"give_up_us", request.give_up_us},
                    {"roofline_us", request.roofline_us},
                    {"cold", request.cold},
                    {"energy", request.energy}});
}

std::string to_line(const WorkerReply& reply) {
    Json timings = Json::array();
    for (const Timing& timing : reply.timings) timings.push_back(to_json(timing));
    return line_of({{"outcome", name(reply.outcome)},
                    {"message", reply.message},
                    {"error", reply.error},
                    {"timings", timings},
                    {"winner", reply.winner},
                    {"ties", reply.ties},
                    {"resident_blocks", reply.resident_blocks},
                    {"note", reply.note},
                    {"clocks", {reply.clock_mhz, reply.memory_clock_mhz, reply.temperature_c}},
                    {"energy_j", reply.energy_j},
                    {"exclusive", reply.exclusive},
                    {"remark", reply.remark}});
}

Result<WorkerRequest> parse_request(std::string_view line) {
    try {
        const Json json = Json::parse(line);
        WorkerRequest request;
        const std::string action = json.at("action");
        const auto found = std::ranges::find(action_names, action);
        if (found == std::end(action_names)) return invalid_argument("unknown action '" + action + "'");
        request.action = static_cast<WorkerAction>(found - std::begin(action_names));
        request.device = json.at("device");
        TILEWRIGHT_ASSIGN_OR_RETURN(request.problem, parse_problem(json.at("problem").get<std::string>()));
        for (const Json& text : json.at("configs")) {
            TILEWRIGHT_ASSIGN_OR_RETURN(const Config config, parse_config(text.get<std::string>()));
            request.configs.push_back(config);
        }
        request.files = json.at("files");
        request.seconds = json.at("seconds");
        request.give_up_us = json.at("give_up_us");
        request.roofline_us = json.at("roofline_us");
        request.cold = json.at("cold");
        request.energy = json.at("energy");
        const size_t wanted = request.action == WorkerAction::prepare ? 0 : 1;
        const size_t files = request.action == WorkerAction::predict ? 0 : request.configs.size();
        if (request.configs.size() < wanted || request.files.size() != files)
            return invalid_argument("a request without its configs or files");
        return request;
    } catch (const Json::exception& error) {
        return invalid_argument(std::string("not a request: ") + error.what());
    }
}

Result<WorkerReply> parse_reply(std::string_view line) {
    try {
        const Json json = Json::parse(line);
        WorkerReply reply;
        TILEWRIGHT_ASSIGN_OR_RETURN(reply.outcome, parse_outcome(json.at("outcome").get<std::string>()));
        reply.message = json.at("message");
        reply.error = json.at("error").is_number() ? json.at("error").get<double>() : -1;
        for (const Json& timing : json.at("timings")) reply.timings.push_back(timing_from(timing));
        reply.winner = json.at("winner");
        reply.ties = json.at("ties").get<std::vector<size_t>>();
        reply.resident_blocks = json.at("resident_blocks").get<std::vector<int>>();
        reply.note = json.at("note");
        const Json& clocks = json.at("clocks");
        reply.clock_mhz = clocks.at(0), reply.memory_clock_mhz = clocks.at(1), reply.temperature_c = clocks.at(2);
        reply.energy_j = json.at("energy_j");
        reply.exclusive = json.at("exclusive");
        reply.remark = json.at("remark");
        return reply;
    } catch (const Json::exception& error) {
        return invalid_argument(std::string("not a reply: ") + error.what());
    }
}

}  // namespace tilewright
