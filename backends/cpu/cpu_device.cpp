// Loads a kernel's shared library and runs its tiles over a thread pool.
#include "backends/cpu/cpu_device.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/thread_pool.h"
#include "backends/decode_plan.h"
#include "backends/launch.h"
#include "backends/registry.h"

namespace tilewright {
namespace {

constexpr int64_t alignment = 256;

using Entry = void(const void*, char*);  // the parameters, and the scratch of the thread

struct Freed {
    void operator()(char* address) const { std::free(address); }
};
using Memory = std::unique_ptr<char, Freed>;

Memory allocate_bytes(int64_t bytes) {
    return Memory(static_cast<char*>(std::aligned_alloc(alignment, static_cast<size_t>((bytes + alignment) / alignment * alignment))));
}

class CpuKernel : public Kernel {
public:
    CpuKernel(void* library, Entry* start, const KernelSpec& compiled_for, int64_t bytes)
        : spec(compiled_for), entry(start), scratch_bytes((bytes + alignment) / alignment * alignment), library_(library) {}
    ~CpuKernel() override { dlclose(library_); }
    CpuKernel(const CpuKernel&) = delete;
    CpuKernel& operator=(const CpuKernel&) = delete;

    KernelSpec spec;
    Entry* entry;
    int64_t scratch_bytes;  // of one thread

private:
    void* library_;
};

// The loader takes two libraries of one path for the same one, and the system deals closed descriptors' numbers again: every
// load spells the path in its own way.
std::string path_of(int file) {
    static std::atomic<unsigned> loads = 0;
    std::string path = "/proc/self/fd";
    unsigned load = loads++;
    for (int bit = 0; bit < 32; ++bit) path += load >> bit & 1 ? "/." : "/";
    return path + "/" + std::to_string(file);
}

class CpuDevice : public Device {
public:
    CpuDevice(DeviceInfo info, int threads) : info_(std::move(info)), pool_(threads) {}
    const DeviceInfo& info() const override { return info_; }

    Result<void*> allocate(int64_t bytes) override {
        if (void* address = allocate_bytes(bytes).release()) return address;
        return Status(StatusCode::unavailable, "no memory for " + std::to_string(bytes) + " bytes");
    }
    Status free(void* address) override {
        std::free(address);
        return {};
    }
    Status copy_to_device(void* to, const void* from, int64_t bytes) override { return copy(to, from, bytes); }
    Status copy_to_host(void* to, const void* from, int64_t bytes) override { return copy(to, from, bytes); }
    Status fill(void* to, unsigned char value, int64_t bytes) override {
        if (bytes > 0) std::memset(to, value, static_cast<size_t>(bytes));
        return {};
    }

    Result<std::unique_ptr<Kernel>> load(const CodeObject& object, const KernelSpec& spec, const KernelSource& source) override {
        int file = memfd_create("tilewright-kernel", MFD_CLOEXEC);
        if (file < 0) return Status(StatusCode::unavailable, std::string("no memory file for a kernel: ") + std::strerror(errno));
        for (size_t done = 0; done < object.bytes.size();) {
            ssize_t written = write(file, object.bytes.data() + done, object.bytes.size() - done);
            if (written <= 0) {
                close(file);
                return Status(StatusCode::unavailable, std::string("a kernel could not be written to memory: ") + std::strerror(errno));
            }
            done += static_cast<size_t>(written);
        }
        void* library = dlopen(path_of(file).c_str(), RTLD_NOW | RTLD_LOCAL);
        close(file);
        if (!library) return Status(StatusCode::runtime, std::string("a kernel could not be loaded: ") + dlerror());
        auto* entry = reinterpret_cast<Entry*>(dlsym(library, source.entry.c_str()));
        if (!entry) {
            dlclose(library);
            return Status(StatusCode::runtime, "a kernel has no entry point " + source.entry);
        }
        return std::unique_ptr<Kernel>(std::make_unique<CpuKernel>(library, entry, spec, source.shared_bytes));
    }

    Status launch(Kernel& kernel, const kernel::ForwardParameters& given, void*) override {
        auto& cpu_kernel = static_cast<CpuKernel&>(kernel);
        kernel::ForwardParameters parameters = given;
        fill_work_order(cpu_kernel.spec, parameters);
        std::lock_guard one_at_a_time(launch_);
        for (parameters.phase = 0; parameters.phase < phases_of(cpu_kernel.spec.kind); ++parameters.phase) TILEWRIGHT_RETURN_IF_ERROR(run(cpu_kernel, parameters, &parameters));
        return {};
    }
    Status launch(Kernel& kernel, const kernel::PackedParameters& given, void*) override { return launch_tiles(kernel, given); }
    Status launch(Kernel& kernel, const kernel::AppendParameters& given, void*) override {
        kernel::AppendParameters parameters = given;
        std::lock_guard one_at_a_time(launch_);
        return run(static_cast<CpuKernel&>(kernel), kernel::append_blocks(parameters), parameters.dealt, &parameters);
    }
    Status launch(Kernel& kernel, const kernel::DecodeParameters& given, void*) override {
        auto& cpu_kernel = static_cast<CpuKernel&>(kernel);
        kernel::DecodeParameters parameters = given;
        parameters.forward.tiles = decode_units(cpu_kernel.spec, parameters);
        std::lock_guard one_at_a_time(launch_);
        return run(cpu_kernel, parameters.forward, &parameters);
    }
    Status launch(Kernel& kernel, const kernel::BackwardParameters& given, void*) override { return launch_tiles(kernel, given); }
    Status synchronize() override { return {}; }

    Result<std::vector<double>> time_us(int launches, const std::function<Status()>& before, const std::function<Status()>& launch) override {
        std::vector<double> times;
        for (int i = 0; i < launches; ++i) {
            if (before) TILEWRIGHT_RETURN_IF_ERROR(before());
            auto start = std::chrono::steady_clock::now();
            TILEWRIGHT_RETURN_IF_ERROR(launch());
            times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
        }
        return times;
    }
    Result<int> resident_blocks(Kernel&) override {
        return Status(StatusCode::unsupported, "a CPU core runs one tile at a time; there is no occupancy to ask for");
    }

private:
    template <class Parameters>
    Status launch_tiles(Kernel& kernel, const Parameters& given) {
        auto& cpu_kernel = static_cast<CpuKernel&>(kernel);
        Parameters parameters = given;
        fill_work_order(cpu_kernel.spec, parameters);
        std::lock_guard one_at_a_time(launch_);
        return run(cpu_kernel, parameters.forward, &parameters);
    }
    Status run(const CpuKernel& kernel, kernel::ForwardParameters& parameters, const void* arguments) {
        return run(kernel, parameters.tiles, parameters.tiles_dealt, arguments);
    }
    // Every tile once, on as many threads as there are tiles for; `arguments` holds `tiles_dealt`. The caller holds launch_.
    Status run(const CpuKernel& kernel, int tiles, unsigned*& tiles_dealt, const void* arguments) {
        int threads = std::min(pool_.threads(), tiles);
        if (int64_t bytes = kernel.scratch_bytes * threads; bytes > scratch_bytes_) {
            scratch_bytes_ = 0, scratch_ = allocate_bytes(bytes);
            if (!scratch_) return {StatusCode::unavailable, "no memory for " + std::to_string(bytes) + " bytes of scratch"};
            scratch_bytes_ = bytes;
        }
        unsigned dealt = 0;
        tiles_dealt = &dealt;
        pool_.run(threads, [&](int thread) { kernel.entry(arguments, scratch_.get() + thread * kernel.scratch_bytes); });
        return {};
    }
    static Status copy(void* to, const void* from, int64_t bytes) {
        if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
        return {};
    }
    DeviceInfo info_;
    ThreadPool pool_;
    std::mutex launch_;  // guards the pool and the scratch, which is kept: fresh pages cost more than small launches
    Memory scratch_;
    int64_t scratch_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<Device>> open_cpu(int threads) {
    if (const char* chosen = std::getenv("TILEWRIGHT_CPU_THREADS"); threads == 0 && chosen) {
        threads = std::atoi(chosen);
        if (threads < 1) return invalid_argument(std::string("TILEWRIGHT_CPU_THREADS is '") + chosen + "'; it must be a number from 1 on");
    }
    TILEWRIGHT_ASSIGN_OR_RETURN(std::vector<DeviceInfo> devices, cpu_backend().devices());
    DeviceInfo info = devices.at(0);
    if (threads == 0) threads = info.arch.units;
    double share = static_cast<double>(threads) / info.arch.units;
    info.arch.units = threads;
    info.arch.matrix_tflops_16bit *= share, info.arch.matrix_tflops_32bit *= share, info.arch.memory_gbps *= share;
    return std::unique_ptr<Device>(std::make_unique<CpuDevice>(std::move(info), threads));
}

}  // namespace tilewright
