// A stand-in for NVIDIA's management library: one device, whose state tests set through fake_nvml_set().
#include <cstring>
#include <map>
#include <string>

namespace {

constexpr int success = 0, not_supported = 3, not_found = 6, uninitialized = 1;
std::map<std::string, unsigned long long> values;
int users = 0;

int give(const char* name, unsigned long long& value) {
    if (users == 0) return uninitialized;
    const auto found = values.find(name);
    if (found == values.end()) return not_supported;
    value = found->second;
    return success;
}

int give(const char* name, unsigned* value) {
    unsigned long long wide = 0;
    const int result = give(name, wide);
    if (result == success) *value = static_cast<unsigned>(wide);
    return result;
}

}  // namespace

extern "C" {

// Without a value the library does not support what `name` says; "init" is what nvmlInit_v2 returns.
void fake_nvml_set(const char* name, unsigned long long value) { values[name] = value; }
void fake_nvml_reset() { values.clear(); }
int fake_nvml_users() { return users; }

int nvmlInit_v2() {
    if (const auto found = values.find("init"); found != values.end()) return static_cast<int>(found->second);
    ++users;
    return success;
}
int nvmlShutdown() {
    --users;
    return success;
}
const char* nvmlErrorString(int code) { return code == not_found ? "Not Found" : "Driver Not Loaded"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** device) {
    static int only;
    if (std::strcmp(pci, "00000000:3b:00.0") != 0) return not_found;
    *device = &only;
    return success;
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) { return give(type == 1 ? "sm" : type == 2 ? "memory" : "?", mhz); }
int nvmlDeviceGetTemperature(void*, int sensor, unsigned* celsius) { return give(sensor == 0 ? "temperature" : "?", celsius); }
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) { return give("reasons", *bits); }
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) { return give("energy", *millijoules); }
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) { return give("processes", count); }

}  // extern "C"
