// Winners of neighbouring problems and other devices, as first proposals.
#include "tuner/seeds.h"

#include <algorithm>
#include <cmath>

#include "backends/embedded_kernels.h"
#include "db/defaults.h"
#include "model/space.h"
#include "runtime/device_class.h"

namespace tilewright {
namespace {

double doublings(int64_t a, int64_t b) {
    return std::fabs(std::log2(static_cast<double>(std::max<int64_t>(a, 1)) / static_cast<double>(std::max<int64_t>(b, 1))));
}

double distance(const MeasurementRow& row, const Problem& problem, const DeviceClass& device) {
    const Problem& other = row.problem;
    double sum = doublings(other.seq_q, problem.seq_q) + doublings(other.seq_kv, problem.seq_kv) +
                 0.5 * doublings(other.batch * other.heads_q, problem.batch * problem.heads_q);
    if (other.dtype != problem.dtype) sum += 2;
    if (other.causal() != problem.causal() || other.windowed() != problem.windowed()) sum += 1;
    if (row.device == device) return sum;
    return sum + (row.device.arch == device.arch ? 1 : row.device.family == device.family ? 3 : 6);
}

}  // namespace

Result<std::vector<Config>> seed_configs(const Problem& problem, const DeviceInfo& device, Store& store, size_t limit) {
    struct Known {
        double distance;
        Config config;
    };
    std::vector<Known> known;
    const DeviceClass own = device_class(device);
    const auto take = [&](const MeasurementRow& row) -> Status {
        const Problem& other = row.problem;
        if (other.operation == problem.operation && other.head_dim == problem.head_dim && other.head_dim_v == problem.head_dim_v)
            known.push_back({distance(row, problem, own), row.measurement.config});
        return {};
    };
    TILEWRIGHT_RETURN_IF_ERROR(store.for_each_best(take));
    for (const MeasurementRow& row : default_rows()) TILEWRIGHT_RETURN_IF_ERROR(take(row));
    std::ranges::stable_sort(known, {}, &Known::distance);
    std::vector<Config> seeds = {default_config(problem, device.arch)};
    for (const Known& each : known)
        if (seeds.size() <= limit && std::ranges::find(seeds, each.config) == seeds.end()) seeds.push_back(each.config);
    return seeds;
}

Result<Toolchain> toolchain_of(Backend& backend) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::string text, backend.toolchain());
    const size_t end = std::min(text.find(';'), text.size());
    // FNV-1a of every device header: winners of other kernel texts are kept apart.
    uint64_t hash = 0xcbf29ce484222325u;
    for (const EmbeddedFile* file = embedded_kernels; file->path != nullptr; ++file)
        for (const std::string_view part : {std::string_view(file->path), std::string_view(file->text)})
            for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    char digits[17];
    snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
    const std::string flags = end < text.size() ? text.substr(text.find_first_not_of("; ", end)) : "";
    return Toolchain{text.substr(0, end), flags, digits};
}

}  // namespace tilewright
