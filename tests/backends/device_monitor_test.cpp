// What is read of a device's state, through a stand-in for NVIDIA's management library.
#include "backends/device_monitor.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "backends/shared_library.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

class Monitor : public testing::Test {
protected:
    void SetUp() override {
        auto library = SharedLibrary::open(TILEWRIGHT_FAKE_NVML);
        ASSERT_TRUE(library.ok()) << library.status().message();
        library_ = std::make_unique<SharedLibrary>(*std::move(library));
        ASSERT_TRUE(library_->bind("fake_nvml_set", set_).ok());
        ASSERT_TRUE(library_->bind("fake_nvml_reset", reset_).ok());
        ASSERT_TRUE(library_->bind("fake_nvml_users", users_).ok());
        reset_();
        setenv("TILEWRIGHT_NVML_LIBRARY", TILEWRIGHT_FAKE_NVML, 1);
        device_.id = "nvidia:0";
        device_.arch.backend = "nvidia";
        device_.pci = "00000000:3b:00.0";
    }
    void TearDown() override { unsetenv("TILEWRIGHT_NVML_LIBRARY"); }

    void (*set_)(const char*, unsigned long long) = nullptr;
    void (*reset_)() = nullptr;
    int (*users_)() = nullptr;
    DeviceInfo device_;
    std::unique_ptr<SharedLibrary> library_;
};

TEST_F(Monitor, ReadsWhatTheLibraryKnows) {
    set_("sm", 1980);
    set_("memory", 3201);
    set_("temperature", 61);
    set_("energy", 12500);
    set_("processes", 3);
    set_("reasons", 0x4 | 0x20 | 0x40 | 0x1);
    {
        const auto monitor = open_monitor(device_);
        ASSERT_TRUE(monitor.ok()) << monitor.status().message();
        const DeviceState state = (*monitor)->read();
        EXPECT_EQ(state.clock_mhz, 1980);
        EXPECT_EQ(state.memory_clock_mhz, 3201);
        EXPECT_EQ(state.temperature_c, 61);
        EXPECT_EQ(state.energy_j, 12.5);
        EXPECT_EQ((*monitor)->read_energy_j(), 12.5);
        EXPECT_EQ(state.others, 2);
        EXPECT_EQ(state.throttled, "power, heat");
        EXPECT_EQ(users_(), 1);
    }
    EXPECT_EQ(users_(), 0);
}

TEST_F(Monitor, WhatTheLibraryDoesNotKnowIsNotKnown) {
    const auto monitor = open_monitor(device_);
    ASSERT_TRUE(monitor.ok());
    const DeviceState state = (*monitor)->read();
    EXPECT_EQ(state.clock_mhz, 0);
    EXPECT_EQ(state.energy_j, -1);
    EXPECT_EQ((*monitor)->read_energy_j(), -1);
    EXPECT_EQ(state.others, -1);
    EXPECT_EQ(state.throttled, "");
    set_("reasons", 0x1 | 0x2);  // idle, and clocks as an application asked: nobody holds them down
    set_("processes", 1);
    EXPECT_EQ((*monitor)->read().throttled, "");
    EXPECT_EQ((*monitor)->read().others, 0);
}

TEST_F(Monitor, SaysWhyThereIsNone) {
    DeviceInfo other = device_;
    other.pci = "00000000:5e:00.0";
    EXPECT_THAT(open_monitor(other).status().message(), testing::AllOf(HasSubstr("00000000:5e:00.0"), HasSubstr("Not Found")));
    EXPECT_EQ(users_(), 0);
    set_("init", 9);
    EXPECT_THAT(open_monitor(device_).status().message(), HasSubstr("Driver Not Loaded"));
    setenv("TILEWRIGHT_NVML_LIBRARY", "/nowhere/libnvidia-ml.so", 1);
    EXPECT_EQ(open_monitor(device_).status().code(), StatusCode::unavailable);
    other.arch.backend = "cpu";
    other.id = "cpu:0";
    EXPECT_EQ(open_monitor(other).status().code(), StatusCode::unsupported);
}

TEST(AmdMonitor, ReadsClocksTemperatureAndEnergy) {
    const auto library = SharedLibrary::open(TILEWRIGHT_FAKE_AMD_SMI);
    ASSERT_TRUE(library.ok()) << library.status().message();
    void (*fail)(int) = nullptr;
    int (*users)() = nullptr;
    ASSERT_TRUE(library->bind("fake_amd_smi_fail", fail).ok() && library->bind("fake_amd_smi_users", users).ok());
    setenv("TILEWRIGHT_AMD_SMI_LIBRARY", TILEWRIGHT_FAKE_AMD_SMI, 1);
    DeviceInfo device;
    device.arch.backend = "amd";
    device.pci = "00000000:c1:05.0";
    {
        const auto monitor = open_monitor(device);
        ASSERT_TRUE(monitor.ok()) << monitor.status().message();
        const DeviceState state = (*monitor)->read();
        EXPECT_EQ(state.clock_mhz, 2100);
        EXPECT_EQ(state.memory_clock_mhz, 1300);
        EXPECT_EQ(state.temperature_c, 57);
        EXPECT_EQ(state.energy_j, 31);
        EXPECT_EQ((*monitor)->read_energy_j(), 31);
        EXPECT_EQ(state.others, -1);
        EXPECT_EQ(users(), 1);
    }
    EXPECT_EQ(users(), 0);
    device.pci = "00000000:c2:00.0";
    EXPECT_THAT(open_monitor(device).status().message(), HasSubstr("AMDSMI_STATUS_NOT_FOUND"));
    EXPECT_EQ(users(), 0);
    device.pci = "";
    EXPECT_EQ(open_monitor(device).status().code(), StatusCode::unavailable);
    device.pci = "00000000:c1:05.0";
    fail(34);
    EXPECT_THAT(open_monitor(device).status().message(), HasSubstr("DRIVER_NOT_LOADED"));
    fail(0);
    unsetenv("TILEWRIGHT_AMD_SMI_LIBRARY");
}

TEST(DeviceState, RemarksSayWhatShouldBeKnownOfAMeasurement) {
    DeviceState before, after;
    EXPECT_EQ(remarks(before, after), "");
    before.clock_mhz = 1980, after.clock_mhz = 1965;
    EXPECT_EQ(remarks(before, after), "");
    after.clock_mhz = 1410;
    after.throttled = "power";
    after.others = 1;
    EXPECT_EQ(remarks(before, after), "clocks held down by power; 1 other process on the device; the clock went from 1980 to 1410 MHz");
    before.throttled = "heat", before.others = 3, after = {};
    EXPECT_EQ(remarks(before, after), "clocks held down by heat; 3 other processes on the device");
}

}  // namespace
}  // namespace tilewright
