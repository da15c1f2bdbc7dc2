// Puts the metadata note and the decoded machine code into one Resources.
#include "backends/amd/inspect.h"

#include "backends/amd/code_object.h"
#include "backends/amd/instructions.h"

namespace tilewright::amd {

Result<Resources> inspect(const CodeObject& object) {
    TILEWRIGHT_ASSIGN_OR_RETURN(ParsedObject parsed, read_code_object(object.bytes));
    if (parsed.kernels.empty()) return invalid_argument("the code object holds no kernel");
    const KernelCode& kernel = parsed.kernels[0];
    Resources resources;
    resources.registers = kernel.vector_registers;
    resources.accumulation_registers = kernel.accumulation_registers;
    resources.scalar_registers = kernel.scalar_registers;
    resources.shared_bytes = kernel.group_bytes;
    resources.local_bytes = kernel.private_bytes;
    resources.vector_spills = kernel.vector_spills;
    resources.scalar_spills = kernel.scalar_spills;
    resources.spill_bytes = int64_t{4} * kernel.vector_spills;
    resources.warp_size = kernel.wave_size;

    Family family = parsed.arch.starts_with("gfx12") ? Family::rdna4 : parsed.arch.starts_with("gfx11") ? Family::rdna3 : Family::cdna;
    Result<InstructionCounts> counted = count_instructions(kernel.code, family);
    if (!counted.ok()) return resources;
    resources.matrix_instructions = counted->matrix;
    resources.instructions = {{"matrix", counted->matrix},
                              {"lds", counted->lds},
                              {"lane_exchange", counted->lane_exchange},
                              {"global_load", counted->global_load},
                              {"global_store", counted->global_store},
                              {"scratch", counted->scratch},
                              {"scalar_load", counted->scalar_load},
                              {"exponential", counted->exponential},
                              {"wait", counted->wait},
                              {"barrier", counted->barrier},
                              {"total", counted->total}};
    return resources;
}

}  // namespace tilewright::amd
