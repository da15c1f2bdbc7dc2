// A kernel that multiplies two small matrices by one matrix instruction, loaded and stored as its layout table says: if the
// product is right, so is the table.
#pragma once
#include <string>
#include <vector>

#include "backends/kernel_source.h"

namespace tilewright::amd {

struct Probe {
    std::string matrix;  // of kernels/arch: "Mfma16"
    DType dtype = DType::fp16;
    int rows = 16, columns = 16, depth = 16;  // left: rows x depth, right: depth x columns
    int instructions = 1;
};

inline std::vector<Probe> probes_of(const Arch& arch) {
    std::vector<Probe> probes;
    for (DType dtype : {DType::fp16, DType::bf16}) {
        if (arch.name == "gfx950") probes.push_back({"DeepMfma16", dtype, 16, 16, 32, 1}), probes.push_back({"DeepMfma32", dtype, 32, 32, 16, 1});
        else if (arch.family == Family::cdna) probes.push_back({"Mfma16", dtype, 16, 16, 32, 2}), probes.push_back({"Mfma32", dtype, 32, 32, 16, 2});
        if (arch.family == Family::rdna3) probes.push_back({"WmmaGfx11", dtype, 16, 16, 16, 1});
        if (arch.family == Family::rdna4) probes.push_back({"WmmaGfx12", dtype, 16, 16, 16, 1});
    }
    return probes;
}

// Any attention kernel's text brings the headers; its one tile launches one wave of the probe.
inline KernelSpec probe_spec(const Arch& arch, DType dtype) {
    KernelSpec spec;
    spec.problem = {.head_dim = 16, .head_dim_v = 16, .dtype = dtype};
    spec.config.block_q = 64, spec.config.block_kv = 32, spec.config.workers = 4;
    spec.config.blocks = arch.family == Family::cdna ? 2 : 4;
    return spec;
}

// Left in `query`, right in `key`, both row by row; the product, float, in `out`.
inline Result<KernelSource> probe_source(const Arch& arch, const Probe& probe) {
    TILEWRIGHT_ASSIGN_OR_RETURN(KernelSource source, generate(probe_spec(arch, probe.dtype), arch));
    std::string wave = std::to_string(arch.warp_size);
    source.text += R"(
namespace tilewright::kernel {
template <class Matrix, class Element>
TILEWRIGHT_DEVICE void multiply_once(const ForwardParameters& p) {
    using Layout = typename Matrix::Layout;
    constexpr Fragment left = Layout::Left::table, right = Layout::Right::table, product = Layout::Accumulator::table;
    constexpr int steps = Matrix::products, depth = steps * left.columns;
    typename Matrix::Operand a, b;
    typename Matrix::Vector d{};
    int lane = amd::thread();
    for (int s = 0; s < steps; ++s)
        for (int e = 0; e < left.elements; ++e) {
            Place l = place(left, lane, e), r = place(right, lane, e);
            b[s * left.elements + e] = ((const short*)p.query)[l.row * depth + s * left.columns + l.column];
            a[s * left.elements + e] = ((const short*)p.key)[(s * right.rows + r.row) * right.columns + r.column];
        }
    d = Matrix::multiply(Element(), a, b, d);
    for (int e = 0; e < product.elements; ++e) {
        Place at = place(product, lane, e);
        ((float*)p.out)[at.row * product.columns + at.column] = d[e];
    }
}
extern "C" __attribute__((global, amdgpu_flat_work_group_size()" +
                   wave + ", " + wave + "))) void probe(ForwardParameters p) { multiply_once<amd::" + probe.matrix + ", " + name(probe.dtype) + ">(p); }\n}\n";
    source.entry = "probe";
    source.threads = arch.warp_size;
    return source;
}

}  // namespace tilewright::amd
