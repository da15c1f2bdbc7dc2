// Loads a kernel.
#include "backends/nvidia/nvidia_kernel.h"

#include "backends/nvidia/cubin.h"
#include "kernels/arch/sm90_arguments.h"

namespace tilewright::nvidia {
namespace {

constexpr int alignment = 16;  // bytes

Result<CubinKernel> find_kernel(const CodeObject& object, const std::string& entry) {
    TILEWRIGHT_ASSIGN_OR_RETURN(std::vector<CubinKernel> kernels, read_cubin(object.bytes));
    for (CubinKernel& kernel : kernels)
        if (kernel.name == entry) return std::move(kernel);
    return Status(StatusCode::not_found, "the cubin has no kernel " + entry);
}

}  // namespace

NvidiaKernel::NvidiaKernel(const Driver& from, Context in, const KernelSpec& of, const KernelSource& source)
    : driver(from), context(in), spec(of), entry(source.entry), threads(source.threads), shared_bytes(source.shared_bytes) {}

NvidiaKernel::~NvidiaKernel() {
    // A failure means that the context is already lost, with the module.
    if (module) (void)in_context(driver, context, [&] { return driver.unload_module(module); }).ok();
}

Status NvidiaKernel::load(const CodeObject& object, const Arch& arch) {
    if (shared_bytes > arch.shared_bytes_per_block)
        return {StatusCode::unsupported, "a block needs " + std::to_string(shared_bytes) + " bytes of shared memory; the device has " +
                                             std::to_string(arch.shared_bytes_per_block)};
    TILEWRIGHT_ASSIGN_OR_RETURN(CubinKernel found, find_kernel(object, entry));
    bool decodes = spec.kind == KernelKind::attention_decode;
    takes_maps = !decodes && found.parameter_bytes == sizeof(kernel::Sm90Arguments);
    if (decodes && found.parameter_bytes != sizeof(kernel::DecodeParameters))
        return {StatusCode::internal, entry + " takes " + std::to_string(found.parameter_bytes) + " bytes of parameters; the host has " +
                                          std::to_string(sizeof(kernel::DecodeParameters))};
    if (!decodes && !takes_maps && found.parameter_bytes != sizeof(kernel::ForwardParameters))
        return {StatusCode::internal, entry + " takes " + std::to_string(found.parameter_bytes) + " bytes of parameters; the host has " +
                                          std::to_string(sizeof(kernel::ForwardParameters)) + " or " + std::to_string(sizeof(kernel::Sm90Arguments))};
    TILEWRIGHT_RETURN_IF_ERROR(driver.load_module(&module, object.bytes.data()));
    TILEWRIGHT_RETURN_IF_ERROR(driver.get_function(&function, module, entry.c_str()));
    TILEWRIGHT_RETURN_IF_ERROR(driver.set_function_attribute(function, function_attribute::max_dynamic_shared, (int)shared_bytes));
    TILEWRIGHT_RETURN_IF_ERROR(driver.resident_blocks(&resident_blocks, function, (int)threads, (size_t)shared_bytes));
    if (resident_blocks > 0) return {};
    return {StatusCode::unsupported, "a block of " + std::to_string(threads) + " threads with " + std::to_string(found.registers) + " registers and " +
                                         std::to_string(shared_bytes) + " bytes of shared memory does not fit a multiprocessor"};
}

Status NvidiaKernel::check_alignment(const kernel::ForwardParameters& p) const {
    if (!spec.aligned) return {};
    int element_bytes = (int)size_of(spec.problem.dtype);
    struct Operand {
        const char* name;
        const void* address;
        const kernel::Strides& strides;
    };
    for (const Operand& operand : {Operand{"query", p.query, p.query_strides}, {"key", p.key, p.key_strides}, {"value", p.value, p.value_strides}, {"out", p.out, p.out_strides}}) {
        const kernel::Strides& s = operand.strides;
        uintptr_t low_bits = reinterpret_cast<uintptr_t>(operand.address) | (uintptr_t)((s.batch | s.head | s.row) * element_bytes);
        if (low_bits % alignment)
            return invalid_argument(std::string(operand.name) + ": the address or a stride is no multiple of " + std::to_string(alignment) +
                                    " bytes; this kernel was compiled for aligned tensors");
    }
    return {};
}

}  // namespace tilewright::nvidia
