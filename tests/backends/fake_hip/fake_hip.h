// How a test steers the fake HIP runtime and sees what was asked of it.
#pragma once
#include <string>
#include <vector>

namespace fake_hip {

struct Launch {
    unsigned grid[3], block[3], shared_bytes;
    void* stream;
    std::string arguments;  // the bytes of the one parameter
};

struct Graph {
    std::vector<Launch> launches;
};

struct State {
    int devices = 2;
    std::string arch = "gfx942:sramecc+:xnack-";
    int wave = 64;
    int runtime_version = 60241133;
    int arch_offset = 396;      // where the properties name the architecture
    size_t argument_bytes = 0;  // how many a launch copies
    std::string failing_call;   // this call returns `error`
    int error = 0;
    int current_device = 0;
    int live_allocations = 0, live_events = 0, live_modules = 0;
    std::vector<std::string> calls;  // in order, by name
    std::vector<Launch> launches;  // that have run, those of graphs too
    // A stream being captured, in the strictest mode: what may wait for the device, or allocates, is refused, and the graph is lost.
    void* capturing = nullptr;
    bool capture_lost = false;
    Graph graph;  // of the capture
    std::string image;  // the first bytes of the last module
};

using StateFunction = State&();  // exported as fake_hip_state

}  // namespace fake_hip
