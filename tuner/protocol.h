// What tuner and worker say to each other: one JSON object a line, a reply to every request. Local pipes today; the text makes no use of that.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "db/store.h"
#include "tilewright/config.h"
#include "tilewright/problem.h"
#include "tuner/measure.h"

namespace tilewright {

enum class WorkerAction {
    prepare,   // opens the device, computes the right answer of `problem`
    compile,   // configs[0] for the device's architecture, to files[0]
    evaluate,  // checks and measures configs[0], whose object is files[0]
    race,      // measures all configs in turns; all were found correct before
    predict,   // compiles configs[0] for the architecture that `device` names and foretells its time; needs no device
};

struct WorkerRequest {
    WorkerAction action = WorkerAction::prepare;
    std::string device;  // "cpu:0"
    Problem problem;
    std::vector<Config> configs;
    std::vector<std::string> files;  // paths of code objects, one per config
    double seconds = 1;              // for measuring
    double give_up_us = 0;           // a candidate surely slower than this need not be measured precisely; 0: always precisely
    double roofline_us = 0;          // a shorter time is refused as impossible
    bool cold = false;               // the last-level cache is flushed before every launch
    bool energy = false;             // prepare: the device must say what it takes; evaluate: also of a launch; race: by energy
};

struct WorkerReply {
    Outcome outcome = Outcome::correct;
    std::string message;          // why not correct
    double error = -1;            // relative, of evaluate
    std::vector<Timing> timings;  // one for evaluate and predict, one per config for race; of a race by energy in microjoules
    size_t winner = 0;            // of race
    std::vector<size_t> ties;     // of race
    std::vector<int> resident_blocks;  // of a unit, one for each kernel: of compile by the model, of evaluate by the device; empty: not known
    std::string note;             // registers and spills of what was compiled
    double clock_mhz = 0, memory_clock_mhz = 0, temperature_c = 0;  // after evaluate; 0: not known
    double energy_j = 0;          // of a launch, after evaluate with `energy`
    int exclusive = -1;           // nobody else computed on the device: 1 yes, 0 no, -1 not known
    std::string remark;           // of evaluate and race: what disturbed the measurement; empty: nothing that is known
};

// One line, without its end.
std::string to_line(const WorkerRequest& request);
std::string to_line(const WorkerReply& reply);
// invalid_argument: not such a line.
Result<WorkerRequest> parse_request(std::string_view line);
Result<WorkerReply> parse_reply(std::string_view line);

}  // namespace tilewright
