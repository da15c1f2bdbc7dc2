// What the tests of the NVIDIA device's host side share: a device over a stand-in for the driver, a kernel, a launch.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "backends/nvidia/nvidia_backend.h"
#include "backends/nvidia/nvrtc.h"
#include "backends/shared_library.h"
#include "backends/fake_cuda/fake_cuda.h"
#include "kernels/arch/sm90_arguments.h"

namespace tilewright::nvidia {
// A kernel that takes one parameter of `bytes` and does nothing.
inline CodeObject empty_kernel(size_t bytes, const char* arch) {
    std::string n = std::to_string(bytes);
    auto object = nvrtc_compile("struct P { char bytes[" + n + "]; };\nextern \"C\" __global__ void attention_forward(const __grid_constant__ P p) {}", arch);
    EXPECT_TRUE(object.ok()) << object.status().message();
    return object.ok() ? *object : CodeObject();
}

struct Aligned {
    alignas(256) char bytes[256];
};

class NvidiaOverFake : public testing::Test {
protected:
    void SetUp() override {
        auto library = SharedLibrary::open(TILEWRIGHT_FAKE_CUDA);
        ASSERT_TRUE(library.ok()) << library.status().message();
        library_.emplace(*std::move(library));
        fake_cuda::Controls (*controls)() = nullptr;
        ASSERT_TRUE(library_->bind("fake_cuda_controls", controls).ok());
        fake_ = controls();
        fake_.reset();
        backend_ = make_backend(TILEWRIGHT_FAKE_CUDA);
    }
    void open(int index = 0) {
        auto device = backend_->open(index);
        ASSERT_TRUE(device.ok()) << device.status().message();
        device_ = *std::move(device);
    }
    // A kernel over tensor maps on device 0, or over the parameters alone.
    void load(bool takes_maps, Config config = {}) {
        if (auto info = nvrtc_info(); !info.ok()) GTEST_SKIP() << info.status().message();
        if (!device_) open();
        parameter_bytes_ = takes_maps ? sizeof(kernel::Sm90Arguments) : sizeof(kernel::ForwardParameters);
        fake_.set_parameter_bytes(parameter_bytes_);
        KernelSpec spec;
        spec.config = config;
        auto kernel = device_->load(empty_kernel(parameter_bytes_, "sm_90a"), spec, {"", "attention_forward", 128, 4096});
        ASSERT_TRUE(kernel.ok()) << kernel.status().message();
        kernel_ = *std::move(kernel);
    }
    // One batch, four heads, 300 queries and keys, 64 columns.
    kernel::ForwardParameters parameters() {
        kernel::ForwardParameters p{};
        p.query = query_.bytes, p.key = key_.bytes, p.value = value_.bytes, p.out = out_.bytes;
        p.query_strides = p.key_strides = p.value_strides = p.out_strides = {4 * 300 * 64, 300 * 64, 64};
        p.batch = 1, p.heads_q = p.heads_kv = 4, p.seq_q = p.seq_kv = 300, p.scale = 1;
        return p;
    }
    kernel::ForwardParameters launched() {
        kernel::ForwardParameters p;
        fake_cuda::Launch launch = fake_.last_launch();
        std::memcpy(&p, launch.parameters + (parameter_bytes_ == sizeof p ? 0 : offsetof(kernel::Sm90Arguments, parameters)), sizeof p);
        return p;
    }

    std::optional<SharedLibrary> library_;
    fake_cuda::Controls fake_{};
    std::unique_ptr<Backend> backend_;  // before the device, before the kernel
    std::unique_ptr<Device> device_;
    std::unique_ptr<Kernel> kernel_;
    size_t parameter_bytes_ = 0;
    Aligned query_, key_, value_, out_;
};

}  // namespace tilewright::nvidia
