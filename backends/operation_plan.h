// What a call of an operation consists of: kernels in the order of their launches, their parameters, the workspace between them. Runtime,
// checks, tuner and benchmarks all ask here, so that a new operation, or another way to do one, is said once.
#pragma once
#include <span>
#include <variant>
#include <vector>

#include "backends/backend.h"
#include "backends/backward_plan.h"
#include "backends/decode_plan.h"

namespace tilewright {

// What a call's arguments demand of its kernels, beside problem and config.
struct CallTraits {
    bool aligned = true;        // as KernelSpec has them, as are the next two
    bool rescaled = false;
    bool paged = false;
    int64_t query_rows = -1;    // packed, backward: of all sequences; -1: as many as query_lengths() has
    bool materialized = false;  // forward: the standard baseline, which writes its scores to memory
    int splits = 0;             // decode: units that a line is cut into (decode_plan.h); 0: as many as the config says
};
// Of dense, aligned tensors and a positive scale, which is what is tuned.
CallTraits dense_traits(const Problem& problem);

struct OperationPlan {
    std::vector<KernelSpec> kernels;  // in the order of their launches
    int64_t workspace_bytes = 0;      // of the device, aligned to 16 bytes
    bool workspace_zeroed = false;    // it holds zeros before its first use; every call leaves it fit for the next
    BackwardWorkspace backward;       // the workspace's parts, or how the keys are divided
    DecodePlan decode;
};

// The problem must be valid. invalid_argument as plan_decode(). Whether the architecture can run the kernels is generate()'s to say.
// Pure, thread-safe.
Result<OperationPlan> plan_operation(const Problem& problem, const Config& config, const Arch& arch, const CallTraits& traits);

// The arguments of all kernels of an operation: tensors and sizes are the caller's to set.
using OperationParameters = std::variant<kernel::ForwardParameters, kernel::BackwardParameters, kernel::DecodeParameters, kernel::PackedParameters>;
// Those of the problem's operation (PackedParameters, if it is packed), with nothing set.
OperationParameters parameters_of(const Problem& problem);
kernel::ForwardParameters& forward_part(OperationParameters& parameters);
const kernel::ForwardParameters& forward_part(const OperationParameters& parameters);

// Sets what follows from the plan: pointers into the workspace, and how the work is divided.
void use_workspace(const OperationPlan& plan, void* workspace, OperationParameters& parameters);

// An operation that can be launched. The kernels belong to whoever loaded them.
struct ReadyOperation {
    OperationPlan plan;
    std::vector<Kernel*> kernels;  // of plan.kernels, in their order
};

// Launches the kernels, which must be those of the plan, one after another.
Status launch(Device& device, std::span<Kernel* const> kernels, const OperationParameters& parameters, void* stream);

}  // namespace tilewright
