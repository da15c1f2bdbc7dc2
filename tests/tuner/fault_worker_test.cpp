// The other end of the fault tests: what this program does when it is started as a worker.
#include "tuner/fault_worker.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>  // its streams are made before those that follow here
#include <iterator>
#include <memory>

#include "tuner/device_tasks.h"
#include "tuner/worker.h"

namespace tilewright::test {
namespace {

WorkerReply failed(Outcome outcome, const std::string& message) {
    WorkerReply reply;
    reply.outcome = outcome;
    reply.message = message;
    return reply;
}

size_t place_of(const Config& config) {
    static const TuningSpace space = *tuning_space(fault_problem(), find_device("cpu:0")->arch, {});
    return static_cast<size_t>(std::ranges::find(space.configs, config) - space.configs.begin());
}

[[noreturn]] void hang() {
    while (true) pause();
}

double energy_of(size_t place) { return 2 - 0.01 * static_cast<double>(place); }

WorkerReply handle(const WorkerRequest& request, const std::string& mode) {
    if (request.action == WorkerAction::prepare && request.energy && mode == "no energy") return failed(Outcome::runtime, "it does not say how much energy it takes");
    if (request.action == WorkerAction::prepare) return mode == "dead" || request.device.starts_with("dead") ? failed(Outcome::runtime, "the bus fell off") : WorkerReply{};
    WorkerReply reply;
    if (request.action == WorkerAction::race) {
        for (const Config& config : request.configs) {
            const double time = request.energy ? 1e6 * energy_of(place_of(config)) : 1000 + 10.0 * static_cast<double>(place_of(config));
            reply.timings.push_back({time, time, time, time - 1, time + 1, 50});
            if (time < reply.timings[reply.winner].median_us) reply.winner = reply.timings.size() - 1;
        }
        reply.ties = {reply.winner};
        return reply;
    }
    const size_t place = place_of(request.configs[0]);
    if (request.action == WorkerAction::compile) {
        if (place == does_not_compile) return failed(Outcome::compile, "error: expected ';'");
        if (place == crashes_the_compiler) raise(SIGILL);
        if (place == hangs_the_compiler && mode == "all") hang();
        reply.resident_blocks = {4, 2};
        return reply;
    }
    if (mode == "slow") usleep(50000);
    if (mode != "all" && (place == hangs || place == stops_itself || place == hangs_the_compiler)) return failed(Outcome::timeout, "spared");
    switch (place) {
        case crashes:
            raise(SIGSEGV);
            break;
        case hangs:
            hang();
        case is_wrong:
            return failed(Outcome::correctness, "out[3] is 7");
        case eats_memory: {
            std::vector<std::unique_ptr<char[]>> all;
            while (true) all.push_back(std::make_unique<char[]>(size_t{1} << 24));
        }
        case stops_itself:
            raise(SIGSTOP);  // neither dead nor alive, and SIGTERM would not end it
            break;
        case exits:
            std::exit(3);
        case first_good:  // takes one worker with it, not the second
            if (const std::string mark = std::filesystem::temp_directory_path() / ("tilewright_crashed_once_" + std::to_string(getppid()));
                mode == "all" && !std::filesystem::remove(mark)) {
                std::ofstream(mark).put('x');
                raise(SIGABRT);
            }
            break;
        default:
            break;
    }
    const double time = 1000 + 10.0 * static_cast<double>(place);
    if (place != disturbed) reply.resident_blocks = {4, place == misjudged ? 1 : 2};
    reply.timings = {{time, time - 2, time + 2, time - 1, time + 1, 9}};
    if (place == disturbed) reply.remark = "clocks held down by power", reply.clock_mhz = 1410, reply.temperature_c = 88, reply.exclusive = 0;
    if (request.energy) reply.energy_j = energy_of(place);
    reply.error = place <= rough_good ? 1e-4 : 1e-6;
    return reply;
}

// Before main: a worker of the fault tests never becomes a test program.
const bool served = [] {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string line{std::istreambuf_iterator<char>(file), {}};
    const size_t place = line.find(std::string("--fault-worker\0", 15));
    if (place == std::string::npos) return false;
    const std::string mode = line.c_str() + place + 15;
    std::_Exit(serve_worker([&](const WorkerRequest& request) { return handle(request, mode); }, int64_t{256} << 20));
}();

}  // namespace

std::vector<std::string> fault_worker_command(const std::string& mode) {
    return {std::filesystem::read_symlink("/proc/self/exe").string(), "--fault-worker", mode};
}

Problem fault_problem() { return *parse_problem("forward:b1,hq2,sq512,d64,fp32"); }

}  // namespace tilewright::test
