// The AMD device on a HIP runtime that remembers its calls.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "backends/amd/amd_backend.h"
#include "fake_hip/fake_hip.h"
#include "kernels/parameters.h"

namespace tilewright::amd {

class AmdDevice : public testing::Test {
protected:
    AmdDevice() : backend_(make_backend(TILEWRIGHT_FAKE_HIP)) {
        void* library = dlopen(TILEWRIGHT_FAKE_HIP, RTLD_NOW | RTLD_LOCAL);
        EXPECT_NE(library, nullptr) << dlerror();
        state_ = &reinterpret_cast<fake_hip::StateFunction*>(dlsym(library, "fake_hip_state"))();
        *state_ = {};
        state_->argument_bytes = sizeof(kernel::ForwardParameters);
    }
    ~AmdDevice() override {
        EXPECT_EQ(state_->live_allocations, 0);
        EXPECT_EQ(state_->live_events, 0);
        EXPECT_EQ(state_->live_modules, 0);
    }
    std::unique_ptr<Device> open(int index) {
        auto device = backend_->open(index);
        EXPECT_TRUE(device.ok()) << device.status().message();
        state_->calls.clear();
        return device.ok() ? *std::move(device) : nullptr;
    }
    void fail(const std::string& call, int error) { state_->failing_call = call, state_->error = error; }
    std::unique_ptr<Backend> backend_;
    fake_hip::State* state_;
};

}  // namespace tilewright::amd
