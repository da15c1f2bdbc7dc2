// Which kernels a machine will ask for, compiled before it asks.
#include "runtime/pack.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "backends/operation_plan.h"
#include "db/pack.h"
#include "model/space.h"
#include "runtime/device_class.h"
#include "runtime/packed_code.h"

namespace tilewright {
namespace {

struct Wanted {
    Arch arch;
    KernelSource source;
};

class Packer {
public:
    Packer(const std::vector<Problem>& problems, PackReport& report) : problems_(problems), report_(report) {}

    Status copy_winners(Store& from, Store& into, const std::vector<std::string>& archs) {
        TILEWRIGHT_RETURN_IF_ERROR(from.for_each_best([&](const MeasurementRow& row) {
            if (std::ranges::find(archs, row.device.arch) != archs.end()) rows_.push_back(row);
            return Status();
        }));
        report_.rows = static_cast<int64_t>(rows_.size());
        std::set<std::string> known;
        for (const Problem& problem : problems_) known.insert(to_text(problem));
        for (const MeasurementRow& row : rows_)
            if (known.insert(to_text(row.problem)).second) problems_.push_back(row.problem);
        return into.add_all(rows_);
    }

    // What a runtime with the file among its databases takes on every device class of that arch.
    void want(const Arch& arch, const std::string& file) {
        DatabaseOptions options;
        options.use_user = options.log_misses = false;
        options.system_paths = {file};
        options.hooks = lookup_hooks(arch);
        TuningDatabase database = TuningDatabase::open(std::move(options));
        DeviceInfo unknown;
        unknown.name = arch.name, unknown.arch = arch;
        std::vector<DeviceClass> classes = {device_class(unknown)};
        for (const MeasurementRow& row : rows_)
            if (row.device.arch == arch.name && std::ranges::find(classes, row.device) == classes.end()) classes.push_back(row.device);
        for (const Problem& problem : problems_) {
            for (const DeviceClass& device : classes) want_operation(arch, problem, database.lookup(problem, database.device(device)).config);
        }
    }

    Result<std::vector<PackedKernel>> compile_all() {
        std::vector<PackedKernel> kernels(wanted_.size());
        std::vector<Status> statuses(wanted_.size());
        std::atomic<size_t> next{0};
        auto work = [&] {
            for (size_t i; (i = next++) < wanted_.size();) {
                const Wanted& wanted = wanted_[i];
                const auto compile = [&]() -> Status {
                    TILEWRIGHT_ASSIGN_OR_RETURN(Backend* const backend, find_backend(wanted.arch.backend));
                    TILEWRIGHT_ASSIGN_OR_RETURN(CodeObject object, backend->compile(wanted.source, wanted.arch));
                    kernels[i] = {pack_key(wanted.source, wanted.arch.name), wanted.arch.name, std::move(object.bytes)};
                    return {};
                };
                statuses[i] = compile();
            }
        };
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
        for (std::thread& thread : threads) thread.join();
        for (const Status& status : statuses) TILEWRIGHT_RETURN_IF_ERROR(status);
        return kernels;
    }

private:
    void want_operation(const Arch& arch, const Problem& problem, const Config& config) {
        Status status = want_kernels(arch, problem, config);
        // As the runtime does where a layout rules the config out.
        if (status.code() == StatusCode::unsupported) status = want_kernels(arch, problem, default_config(problem, arch));
        if (!status.ok()) report_.skipped.push_back(to_text(problem) + " on " + arch.name + ": " + status.message());
    }

    Status want_kernels(const Arch& arch, const Problem& problem, const Config& config) {
        TILEWRIGHT_ASSIGN_OR_RETURN(const OperationPlan plan, plan_operation(problem, config, arch, dense_traits(problem)));
        for (const KernelSpec& spec : plan.kernels) TILEWRIGHT_RETURN_IF_ERROR(want_kernel(arch, spec));
        return {};
    }

    Status want_kernel(const Arch& arch, const KernelSpec& spec) {
        TILEWRIGHT_ASSIGN_OR_RETURN(KernelSource source, generate(spec, arch));
        if (keys_.insert(pack_key(source, arch.name)).second) wanted_.push_back({arch, std::move(source)});
        return {};
    }

    std::vector<Problem> problems_;
    std::vector<MeasurementRow> rows_;
    std::vector<Wanted> wanted_;
    std::set<std::string> keys_;
    PackReport& report_;
};

Status fill(const std::vector<Arch>& archs, const std::vector<std::string>& names, const std::vector<Problem>& problems, Store* from, const std::string& out, PackReport& report) {
    Packer packer(problems, report);
    {
        TILEWRIGHT_ASSIGN_OR_RETURN(Store into, Store::open(out, StoreMode::create));
        if (from) TILEWRIGHT_RETURN_IF_ERROR(packer.copy_winners(*from, into, names));
    }
    for (const Arch& arch : archs) packer.want(arch, out);
    TILEWRIGHT_ASSIGN_OR_RETURN(const std::vector<PackedKernel> kernels, packer.compile_all());
    report.kernels = static_cast<int64_t>(kernels.size());
    TILEWRIGHT_ASSIGN_OR_RETURN(Store into, Store::open(out, StoreMode::write));
    TILEWRIGHT_RETURN_IF_ERROR(write_pack(into, library_version(), kernels));
    return into.compact();
}

}  // namespace

Result<PackReport> make_pack(const std::vector<std::string>& archs, const std::vector<Problem>& problems, Store* from, const std::string& out) {
    std::error_code error;
    if (std::filesystem::exists(out, error)) return invalid_argument(out + " exists");
    std::vector<Arch> known;
    for (const std::string& name : archs) {
        const Arch* const arch = find_arch(name);
        if (!arch) return invalid_argument("unknown arch '" + name + "'");
        if (arch->backend == "cpu") return invalid_argument("code for the CPU is made for the processor that compiles it; it cannot be packed");
        known.push_back(*arch);
    }
    PackReport report;
    const Status status = fill(known, archs, problems, from, out, report);
    if (status.ok()) return report;
    for (const char* part : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(out + part, error);
    return status;
}

}  // namespace tilewright
