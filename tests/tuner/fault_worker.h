// A worker without a device, for the tests of the tuner: this test program started again with --fault-worker. Which config does what is a
// function of its place in the space.
#pragma once
#include <string>
#include <vector>

#include "tuner/tune.h"

namespace tilewright::test {

// Places of the space's configs that go wrong; all others are correct and the earlier the faster: 1000 us + 10 us * place.
// The first good one crashes at its first try.
enum Fault : int {
    crashes = 0,
    hangs = 1,
    is_wrong = 2,
    eats_memory = 3,
    does_not_compile = 4,
    crashes_the_compiler = 5,
    hangs_the_compiler = 6,
    stops_itself = 7,
    exits = 8,
    first_good = 9,
    rough_good = 10,  // the last whose error is 1e-4; those behind have 1e-6
    misjudged = 11,   // the device holds fewer blocks of it than the model says
    disturbed = 12    // measured while clocks are held down and beside another program
};

// Of correct ones the later takes the less energy: 2 J - 0.01 J * place. "all": as above. "brief": what would hang says so at once. "slow": as brief, 50 ms per evaluation. "no energy": nor is its energy known. "dead": the device never answers, as one whose
// name begins so.
std::vector<std::string> fault_worker_command(const std::string& mode);

Problem fault_problem();

}  // namespace tilewright::test
