// Every matrix instruction of an AMD device against its layout table: small integers, so that the product is exact and shows any
// element that is not where the table has it.
#include <gtest/gtest.h>

#include <random>

#include "amd_probe.h"
#include "backends/amd/amd_backend.h"

namespace tilewright::amd {
namespace {

// The integer as an element: exact in both types.
unsigned short element(DType dtype, int x) {
    float number = static_cast<float>(x);
    if (dtype == DType::fp16) return __builtin_bit_cast(unsigned short, static_cast<_Float16>(number));
    return static_cast<unsigned short>(__builtin_bit_cast(unsigned, number) >> 16);
}

struct Matrices {
    std::vector<unsigned short> left, right;
    std::vector<float> product;
};

Matrices random_matrices(const Probe& probe) {
    std::mt19937 random(1);
    std::uniform_int_distribution<int> any(-8, 8);
    std::vector<int> left(static_cast<size_t>(probe.rows * probe.depth)), right(static_cast<size_t>(probe.depth * probe.columns));
    Matrices m;
    for (int& x : left) m.left.push_back(element(probe.dtype, x = any(random)));
    for (int& x : right) m.right.push_back(element(probe.dtype, x = any(random)));
    for (int r = 0; r < probe.rows; ++r)
        for (int c = 0; c < probe.columns; ++c) {
            int sum = 0;
            for (int k = 0; k < probe.depth; ++k) sum += left[static_cast<size_t>(r * probe.depth + k)] * right[static_cast<size_t>(k * probe.columns + c)];
            m.product.push_back(static_cast<float>(sum));
        }
    return m;
}

Result<std::vector<float>> run(Backend& backend, Device& device, const Probe& probe, const Matrices& m) {
    const Arch& arch = device.info().arch;
    TILEWRIGHT_ASSIGN_OR_RETURN(KernelSource source, probe_source(arch, probe));
    TILEWRIGHT_ASSIGN_OR_RETURN(CodeObject object, backend.compile(source, arch));
    TILEWRIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, device.load(object, probe_spec(arch, probe.dtype), source));
    auto left_bytes = static_cast<int64_t>(2 * m.left.size()), right_bytes = static_cast<int64_t>(2 * m.right.size());
    auto product_bytes = static_cast<int64_t>(4 * m.product.size());
    TILEWRIGHT_ASSIGN_OR_RETURN(void* left, device.allocate(left_bytes));
    TILEWRIGHT_ASSIGN_OR_RETURN(void* right, device.allocate(right_bytes));
    TILEWRIGHT_ASSIGN_OR_RETURN(void* product, device.allocate(product_bytes));
    TILEWRIGHT_RETURN_IF_ERROR(device.copy_to_device(left, m.left.data(), left_bytes));
    TILEWRIGHT_RETURN_IF_ERROR(device.copy_to_device(right, m.right.data(), right_bytes));
    TILEWRIGHT_RETURN_IF_ERROR(device.fill(product, 0xff, product_bytes));
    kernel::ForwardParameters parameters{};
    parameters.query = left, parameters.key = right, parameters.out = product;
    parameters.batch = parameters.heads_q = parameters.heads_kv = parameters.seq_q = parameters.seq_kv = 1;  // one tile
    TILEWRIGHT_RETURN_IF_ERROR(device.launch(*kernel, parameters, nullptr));
    TILEWRIGHT_RETURN_IF_ERROR(device.synchronize());
    std::vector<float> result(m.product.size());
    TILEWRIGHT_RETURN_IF_ERROR(device.copy_to_host(result.data(), product, product_bytes));
    for (void* address : {left, right, product}) TILEWRIGHT_RETURN_IF_ERROR(device.free(address));
    return result;
}

TEST(AmdProbeDevice, EveryMatrixInstructionIsAsItsTableSays) {
    auto backend = make_backend();
    auto devices = backend->devices();
    if (!devices.ok()) GTEST_SKIP() << devices.status().message();
    auto device = backend->open(0);
    ASSERT_TRUE(device.ok()) << device.status().message();
    for (const Probe& probe : probes_of((*device)->info().arch)) {
        std::string what = (*device)->info().arch.name + " " + probe.matrix + " " + name(probe.dtype);
        Matrices matrices = random_matrices(probe);
        auto result = run(*backend, **device, probe, matrices);
        ASSERT_TRUE(result.ok()) << what << ": " << result.status().message();
        EXPECT_EQ(*result, matrices.product) << what;
        std::cout << "probed " << what << "\n";
    }
}

}  // namespace
}  // namespace tilewright::amd
