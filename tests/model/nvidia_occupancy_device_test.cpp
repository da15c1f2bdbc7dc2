// The occupancy model against the driver's own answer, over candidates of the search space.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <mutex>
#include <thread>

#include "backends/nvidia/nvidia_backend.h"
#include "model/occupancy.h"
#include "model/space.h"

namespace tilewright {
namespace {

TEST(NvidiaOccupancy, AgreesWithTheDriverForEveryCandidate) {
    auto devices = nvidia_backend().devices();
    if (!devices.ok() || devices->empty()) GTEST_SKIP() << "no NVIDIA device";
    auto device = nvidia_backend().open(0);
    ASSERT_TRUE(device.ok()) << device.status().message();
    const Arch& arch = (*device)->info().arch;
    std::vector<KernelSpec> specs;
    for (const char* text : {"forward:b4,hq32,sq4096,skv4096,d64", "forward:b4,hq16,sq4096,skv4096,d128,causal", "forward:b4,hq8,sq4096,skv4096,d256", "forward:b4,hq16,sq1024,skv1024,d64,fp32"}) {
        Space space = search_space(*parse_problem(text), arch);
        std::vector<Config> all = enumerate(space);
        size_t step = std::max<size_t>(1, all.size() / 24);  // a sample that crosses all fields
        for (size_t i = 0; i < all.size(); i += step) specs.push_back(dense_spec(*parse_problem(text), all[i]));
    }
    std::mutex mutex;
    size_t next = 0, compared = 0, agreed = 0;
    auto work = [&] {
        for (;;) {
            KernelSpec spec;
            {
                std::lock_guard lock(mutex);
                if (next == specs.size()) return;
                spec = specs[next++];
            }
            auto source = generate(spec, arch);
            auto object = source.ok() ? nvidia_backend().compile(*source, arch) : Result<CodeObject>(source.status());
            auto resources = object.ok() ? nvidia_backend().inspect(*object) : Result<Resources>(object.status());
            auto kernel = resources.ok() ? (*device)->load(*object, spec, *source) : Result<std::unique_ptr<Kernel>>(resources.status());
            std::lock_guard lock(mutex);
            std::string candidate = to_text(spec.problem) + " " + to_json(spec.config);
            EXPECT_TRUE(kernel.ok()) << candidate << ": " << kernel.status().message();
            if (!kernel.ok()) continue;
            int ours = occupancy(*source, *resources, arch).blocks, drivers = *(*device)->resident_blocks(**kernel);
            ++compared, agreed += ours == drivers;
            EXPECT_EQ(ours, drivers) << candidate;
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t) threads.emplace_back(work);
    threads.clear();
    std::cout << agreed << " of " << compared << " candidates agree\n";
}

}  // namespace
}  // namespace tilewright
