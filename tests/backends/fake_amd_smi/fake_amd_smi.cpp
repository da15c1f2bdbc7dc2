// A stand-in for AMD's management library: one device, at 0000:c1:05.0.
#include <cstdint>

namespace {
int users = 0;
int failure = 0;  // what amdsmi_init returns
constexpr int not_found = 31, invalid = 1;
int only;
}  // namespace

extern "C" {

void fake_amd_smi_fail(int status) { failure = status; }
int fake_amd_smi_users() { return users; }

int amdsmi_init(uint64_t flags) {
    if (flags != 2) return invalid;
    if (failure == 0) ++users;
    return failure;
}
int amdsmi_shut_down() {
    --users;
    return 0;
}
int amdsmi_status_code_to_string(int status, const char** text) {
    *text = status == not_found ? "AMDSMI_STATUS_NOT_FOUND" : "AMDSMI_STATUS_DRIVER_NOT_LOADED";
    return 0;
}
int amdsmi_get_processor_handle_from_bdf(uint64_t address, void** device) {
    *device = &only;
    return address == (0xc1u << 8 | 5u << 3) ? 0 : not_found;
}
int amdsmi_get_clock_info(void* device, int type, uint32_t* info) {
    if (device != &only || (type != 0 && type != 4)) return invalid;
    info[0] = type == 0 ? 2100 : 1300;
    return 0;
}
int amdsmi_get_temp_metric(void*, int sensor, int metric, int64_t* celsius) {
    *celsius = 57;
    return sensor == 1 && metric == 0 ? 0 : invalid;
}
int amdsmi_get_energy_count(void*, uint64_t* count, float* each, uint64_t* time) {
    *count = 2000000;
    *each = 15.5f;
    *time = 1;
    return 0;
}

}  // extern "C"
