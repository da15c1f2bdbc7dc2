// The AMD device against a HIP runtime that remembers its calls: what is there, memory, and what becomes of errors.
#include "amd_device_fake.h"

#include <gmock/gmock.h>

namespace tilewright::amd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(AmdDevice, ReportsTheTablesRowWithTheDevicesOwnNumbers) {
    auto devices = backend_->devices();
    ASSERT_TRUE(devices.ok()) << devices.status().message();
    ASSERT_EQ(devices->size(), 2u);
    const DeviceInfo& info = (*devices)[1];
    EXPECT_EQ(info.id, "amd:1");
    EXPECT_EQ(info.name, "AMD Instinct gfx-free name");
    EXPECT_EQ(info.driver, "HIP 6.2.41133");
    EXPECT_EQ(info.arch.name, "gfx942");
    EXPECT_EQ(info.arch.units, 152);
    EXPECT_EQ(info.arch.dies, 4);  // half of an MI300X
    EXPECT_EQ(info.arch.l2_bytes, 4 << 20);
    EXPECT_EQ(info.arch.shared_bytes_per_block, 65536);
    EXPECT_DOUBLE_EQ(info.arch.clock_ghz, 2.1);
    EXPECT_DOUBLE_EQ(info.arch.matrix_tflops_16bit, find_arch("gfx942")->matrix_tflops_16bit / 2);
    EXPECT_EQ(info.arch.max_warps_per_unit, find_arch("gfx942")->max_warps_per_unit);
}

TEST_F(AmdDevice, FindsTheArchitectureWhereverTheRuntimesStructHasIt) {
    for (int offset : {340, 396, 1160, 2000}) {
        state_->arch_offset = offset;
        auto devices = backend_->devices();
        ASSERT_TRUE(devices.ok()) << devices.status().message();
        EXPECT_EQ((*devices)[0].arch.name, "gfx942");
    }
}

TEST_F(AmdDevice, AnotherMemberOfAGenerationUsesItsRow) {
    state_->arch = "gfx1102", state_->wave = 32;
    auto devices = backend_->devices();
    ASSERT_TRUE(devices.ok()) << devices.status().message();
    EXPECT_EQ((*devices)[0].arch.name, "gfx1102");
    EXPECT_EQ((*devices)[0].arch.family, Family::rdna3);
}

TEST_F(AmdDevice, ADeviceWithoutKernelsIsNamed) {
    state_->arch = "gfx1030", state_->wave = 32;
    EXPECT_EQ(backend_->devices().status().code(), StatusCode::unavailable);
    EXPECT_THAT(backend_->devices().status().message(), HasSubstr("gfx1030"));
    EXPECT_EQ(backend_->open(0).status().code(), StatusCode::unsupported);
    state_->arch = "gfx1100", state_->wave = 64;
    EXPECT_THAT(backend_->open(0).status().message(), HasSubstr("waves of 64"));
}

TEST_F(AmdDevice, AbsenceIsOneClearSentence) {
    auto absent = make_backend("/nonexistent/libamdhip64.so")->devices();
    ASSERT_FALSE(absent.ok());
    EXPECT_EQ(absent.status().code(), StatusCode::unavailable);
    EXPECT_THAT(absent.status().message(), HasSubstr("/nonexistent/libamdhip64.so"));
    state_->devices = 0;
    EXPECT_THAT(backend_->devices().status().message(), HasSubstr("no device"));
    fail("hipGetDeviceCount", 100);
    auto without_driver = make_backend(TILEWRIGHT_FAKE_HIP)->devices();
    EXPECT_EQ(without_driver.status().code(), StatusCode::unavailable);
    EXPECT_THAT(without_driver.status().message(), HasSubstr("reports no device"));
}

TEST_F(AmdDevice, AnUnknownIndexIsNotFound) {
    EXPECT_EQ(backend_->open(2).status().code(), StatusCode::not_found);
    EXPECT_EQ(backend_->open(-1).status().code(), StatusCode::not_found);
}

TEST_F(AmdDevice, CopiesAndFillsMemory) {
    auto device = open(0);
    auto memory = device->allocate(8);
    ASSERT_TRUE(memory.ok());
    char back[9] = {};
    ASSERT_TRUE(device->copy_to_device(*memory, "12345678", 8).ok());
    ASSERT_TRUE(device->fill(*memory, 'x', 3).ok());
    ASSERT_TRUE(device->copy_to_host(back, *memory, 8).ok());
    EXPECT_STREQ(back, "xxx45678");
    EXPECT_TRUE(device->free(*memory).ok());
    EXPECT_EQ(device->allocate(-1).status().code(), StatusCode::invalid_argument);
    auto empty = device->allocate(0);
    ASSERT_TRUE(empty.ok());
    EXPECT_TRUE(device->free(*empty).ok());
}

TEST_F(AmdDevice, TheCallersCurrentDeviceStaysCurrent) {
    auto device = open(1);
    ASSERT_TRUE(device->synchronize().ok());
    EXPECT_EQ(state_->current_device, 0);
    EXPECT_THAT(state_->calls, ElementsAre("hipGetDevice", "hipSetDevice", "hipDeviceSynchronize", "hipSetDevice"));
    fail("hipDeviceSynchronize", 1);
    EXPECT_FALSE(device->synchronize().ok());
    EXPECT_EQ(state_->current_device, 0);
}

TEST_F(AmdDevice, ErrorsCarryTheCallAndHipsNameAndText) {
    auto device = open(0);
    fail("hipMalloc", 2);
    Status status = device->allocate(1 << 20).status();
    EXPECT_EQ(status.code(), StatusCode::runtime);
    EXPECT_EQ(status.message(), "hipMalloc failed: hipErrorOutOfMemory (out of memory)");
}

}  // namespace
}  // namespace tilewright::amd
