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
    // Without tensor maps and, for kernels that have such a form, with them.
    size_t plain = sizeof(kernel::ForwardParameters), with_maps = sizeof(kernel::Sm90Arguments);
    if (spec.problem.packed) plain = sizeof(kernel::PackedParameters), with_maps = sizeof(kernel::Sm90PackedArguments);
    if (is_backward(spec.kind)) plain = sizeof(kernel::PlainBackwardParameters), with_maps = sizeof(kernel::Sm90BackwardArguments);
    if (takes_whole_parameters(spec)) plain = with_maps = sizeof(kernel::BackwardParameters);
    if (spec.kind == KernelKind::attention_decode) plain = sizeof(kernel::DecodeParameters), with_maps = sizeof(kernel::Sm90DecodeArguments);
    if (spec.kind == KernelKind::append) plain = with_maps = sizeof(kernel::AppendParameters);
    size_t taken = (size_t)found.parameter_bytes;
    if (taken != plain && taken != with_maps)
        return {StatusCode::internal, entry + " takes " + std::to_string(taken) + " bytes of parameters; the host has " + std::to_string(plain) +
                                          (with_maps != plain ? " or " + std::to_string(with_maps) : "")};
    takes_maps = taken != plain;
    TILEWRIGHT_RETURN_IF_ERROR(driver.load_module(&module, object.bytes.data()));
    TILEWRIGHT_RETURN_IF_ERROR(driver.get_function(&function, module, entry.c_str()));
    TILEWRIGHT_RETURN_IF_ERROR(driver.set_function_attribute(function, function_attribute::max_dynamic_shared, (int)shared_bytes));
    TILEWRIGHT_RETURN_IF_ERROR(driver.resident_blocks(&resident_blocks, function, (int)threads, (size_t)shared_bytes));
    if (resident_blocks > 0) return {};
    return {StatusCode::unsupported, "a block of " + std::to_string(threads) + " threads with " + std::to_string(found.registers) + " registers and " +
                                         std::to_string(shared_bytes) + " bytes of shared memory does not fit a multiprocessor"};
}

Status NvidiaKernel::check_alignment(const kernel::ForwardParameters& p) const {
    return check_alignment({{"query", p.query, p.query_strides}, {"key", p.key, p.key_strides}, {"value", p.value, p.value_strides}, {"out", p.out, p.out_strides}});
}

Status NvidiaKernel::check_alignment(const kernel::PlainBackwardParameters& p) const {
    TILEWRIGHT_RETURN_IF_ERROR(check_alignment(p.forward));
    return check_alignment({{"out_gradient", p.out_gradient, p.out_gradient_strides},
                            {"query_gradient", p.query_gradient, p.query_gradient_strides},
                            {"key_gradient", p.key_gradient, p.key_gradient_strides},
                            {"value_gradient", p.value_gradient, p.value_gradient_strides}});
}

Status NvidiaKernel::check_alignment(const kernel::AppendParameters& p) const {
    return check_alignment({{"key", p.key, p.key_strides},
                            {"value", p.value, p.value_strides},
                            {"key_cache", p.key_cache, p.key_cache_strides},
                            {"value_cache", p.value_cache, p.value_cache_strides}});
}

Status NvidiaKernel::check_alignment(std::initializer_list<Operand> operands) const {
    if (!spec.aligned) return {};
    int element_bytes = (int)size_of(spec.problem.dtype);
    for (const Operand& operand : operands) {
        const kernel::Strides& s = operand.strides;
        uintptr_t low_bits = reinterpret_cast<uintptr_t>(operand.address) | (uintptr_t)((s.batch | s.head | s.row) * element_bytes);
        if (low_bits % alignment)
            return invalid_argument(std::string(operand.name) + ": the address or a stride is no multiple of " + std::to_string(alignment) +
                                    " bytes; this kernel was compiled for aligned tensors");
    }
    return {};
}

}  // namespace tilewright::nvidia
