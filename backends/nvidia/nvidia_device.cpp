// The device: every call makes the primary context current for its own duration.
#include "backends/nvidia/nvidia_device.h"

#include <algorithm>

#include "backends/decode_plan.h"
#include "backends/launch.h"
#include "backends/nvidia/device_arch.h"
#include "backends/nvidia/nvidia_kernel.h"
#include "backends/nvidia/tensor_maps.h"
#include "backends/nvidia/tile_counters.h"

namespace tilewright::nvidia {
namespace {

DevicePointer pointer(const void* address) { return reinterpret_cast<uintptr_t>(address); }

Status check_size(int64_t bytes) {
    return bytes < 0 ? invalid_argument("a size is " + std::to_string(bytes) + " bytes; it must be from 0 on") : Status();
}

// Events that are destroyed on every way out.
class Events {
public:
    explicit Events(const Driver& driver) : driver_(driver) {}
    ~Events() {
        for (Event event : all_) (void)driver_.destroy_event(event).ok();  // only a lost context refuses
    }
    Result<Event> record_on_default_stream() {
        Event event = nullptr;
        TILEWRIGHT_RETURN_IF_ERROR(driver_.create_event(&event, event_default));
        all_.push_back(event);
        TILEWRIGHT_RETURN_IF_ERROR(driver_.record(event, Stream()));
        return event;
    }

private:
    const Driver& driver_;
    std::vector<Event> all_;
};

class NvidiaDevice : public Device {
public:
    NvidiaDevice(const Driver& driver, DeviceHandle handle, Context context, DeviceInfo info, int major, int minor)
        : driver_(driver), handle_(handle), context_(context), info_(std::move(info)), major_(major), minor_(minor), counters_(driver), maps_(driver) {}
    ~NvidiaDevice() override {
        // What fails here fails because the context is lost, and its memory with it.
        (void)with_context([&] { return counters_.release(); }).ok();
        (void)driver_.release_primary(handle_).ok();
    }
    Status prepare() {
        return with_context([&] { return counters_.reserve(); });
    }
    const DeviceInfo& info() const override { return info_; }

    Result<void*> allocate(int64_t bytes) override {
        TILEWRIGHT_RETURN_IF_ERROR(check_size(bytes));
        DevicePointer address = 0;
        TILEWRIGHT_RETURN_IF_ERROR(with_context([&] { return driver_.allocate(&address, (size_t)std::max<int64_t>(bytes, 1)); }));
        return reinterpret_cast<void*>(address);
    }
    Status free(void* address) override {
        return with_context([&] { return driver_.free(pointer(address)); });
    }
    Status copy_to_device(void* to, const void* from, int64_t bytes) override {
        TILEWRIGHT_RETURN_IF_ERROR(check_size(bytes));
        return with_context([&]() -> Status {
            TILEWRIGHT_RETURN_IF_ERROR(driver_.copy_to_device(pointer(to), from, (size_t)bytes));
            return driver_.synchronize_stream(Stream());  // from pageable memory the last piece may still be on its way
        });
    }
    Status copy_to_host(void* to, const void* from, int64_t bytes) override {
        TILEWRIGHT_RETURN_IF_ERROR(check_size(bytes));
        return with_context([&] { return driver_.copy_to_host(to, pointer(from), (size_t)bytes); });
    }
    Status fill(void* to, unsigned char value, int64_t bytes) override {
        TILEWRIGHT_RETURN_IF_ERROR(check_size(bytes));
        return with_context([&] { return driver_.fill(pointer(to), value, (size_t)bytes, Stream()); });
    }

    Result<std::unique_ptr<Kernel>> load(const CodeObject& object, const KernelSpec& spec, const KernelSource& source) override {
        TILEWRIGHT_RETURN_IF_ERROR(check_runs_on(object.arch, major_, minor_));
        auto kernel = std::make_unique<NvidiaKernel>(driver_, context_, spec, source);
        TILEWRIGHT_RETURN_IF_ERROR(with_context([&] { return in_relaxed_capture_mode(driver_, [&] { return kernel->load(object, info_.arch); }); }));
        return std::unique_ptr<Kernel>(std::move(kernel));
    }
    Status launch(Kernel& kernel, const kernel::ForwardParameters& given, void* stream) override {
        return launch_forward(static_cast<NvidiaKernel&>(kernel), given, stream);
    }
    Status launch(Kernel& kernel, const kernel::PackedParameters& given, void* stream) override {
        return launch_forward(static_cast<NvidiaKernel&>(kernel), given, stream);
    }
    Status launch(Kernel& kernel, const kernel::AppendParameters& given, void* stream) override {
        auto& nvidia_kernel = static_cast<NvidiaKernel&>(kernel);
        kernel::AppendParameters parameters = given;
        unsigned blocks = (unsigned)kernel::append_blocks(parameters);
        if (blocks == 0) return {};
        TILEWRIGHT_RETURN_IF_ERROR(nvidia_kernel.check_alignment(parameters));
        return with_context([&] { return launch_blocks(nvidia_kernel, blocks, &parameters, static_cast<Stream>(stream)); });
    }
    Status launch(Kernel& kernel, const kernel::DecodeParameters& given, void* stream) override {
        auto& nvidia_kernel = static_cast<NvidiaKernel&>(kernel);
        if (decode_units(nvidia_kernel.spec, given) == 0) return {};
        TILEWRIGHT_RETURN_IF_ERROR(nvidia_kernel.check_alignment(given.forward));
        kernel::Sm90DecodeArguments arguments;
        arguments.parameters = given;
        return with_context([&] { return launch_in_context(nvidia_kernel, arguments, static_cast<Stream>(stream)); });
    }
    Status launch(Kernel& kernel, const kernel::BackwardParameters& given, void* stream) override {
        auto& nvidia_kernel = static_cast<NvidiaKernel&>(kernel);
        kernel::BackwardParameters parameters = given;
        fill_work_order(nvidia_kernel.spec, parameters);
        if (parameters.forward.tiles == 0) return {};
        TILEWRIGHT_RETURN_IF_ERROR(nvidia_kernel.check_alignment(parameters));
        if (takes_whole_parameters(nvidia_kernel.spec)) return with_context([&] { return launch_blocks(nvidia_kernel, (unsigned)parameters.forward.tiles, &parameters, static_cast<Stream>(stream)); });
        kernel::Sm90BackwardArguments arguments;
        arguments.parameters = parameters;
        return with_context([&] { return launch_in_context(nvidia_kernel, arguments, static_cast<Stream>(stream)); });
    }
    Status synchronize() override {
        return with_context([&] { return driver_.synchronize(); });
    }
    Result<std::vector<double>> time_us(int launches, const std::function<Status()>& before, const std::function<Status()>& launch) override;
    Result<int> resident_blocks(Kernel& kernel) override { return static_cast<NvidiaKernel&>(kernel).resident_blocks; }

private:
    template <class Body>
    Status with_context(Body&& body) {
        return in_context(driver_, context_, std::forward<Body>(body));
    }
    Status launch_in_context(const NvidiaKernel& kernel, kernel::Sm90DecodeArguments& arguments, Stream stream);
    Status make_maps(const NvidiaKernel& kernel, kernel::Sm90DecodeArguments& arguments);
    template <class Parameters>
    Status launch_forward(const NvidiaKernel& kernel, const Parameters& given, void* stream) {
        kernel::Sm90ArgumentsWith<Parameters> arguments;
        arguments.parameters = given;
        fill_work_order(kernel.spec, arguments.parameters);
        const kernel::ForwardParameters& forward = kernel::forward_of(arguments.parameters);
        if (forward.tiles == 0) return {};
        TILEWRIGHT_RETURN_IF_ERROR(kernel.check_alignment(forward));
        return with_context([&] { return launch_in_context(kernel, arguments, static_cast<Stream>(stream)); });
    }
    template <class Parameters>
    Status launch_in_context(const NvidiaKernel& kernel, kernel::Sm90ArgumentsWith<Parameters>& arguments, Stream stream);
    template <class Arguments>
    Status make_maps(const NvidiaKernel& kernel, const kernel::ForwardParameters& p, Arguments& arguments);
    Status launch_in_context(const NvidiaKernel& kernel, kernel::Sm90BackwardArguments& arguments, Stream stream);
    Status launch_blocks(const NvidiaKernel& kernel, unsigned blocks, void* argument, Stream stream) {
        return driver_.launch(kernel.function, blocks, 1u, 1u, kernel.threads, 1u, 1u, kernel.shared_bytes, stream, &argument, (void**)nullptr);
    }
    Status make_maps(const NvidiaKernel& kernel, kernel::Sm90BackwardArguments& arguments);

    const Driver& driver_;
    const DeviceHandle handle_;
    const Context context_;
    const DeviceInfo info_;
    const int major_, minor_;
    TileCounters counters_;
    TensorMaps maps_;
};

template <class Arguments>
Status NvidiaDevice::make_maps(const NvidiaKernel& kernel, const kernel::ForwardParameters& p, Arguments& arguments) {
    const Config& config = kernel.spec.config;
    DType dtype = kernel.spec.problem.dtype;
    int columns = (int)kernel.spec.problem.head_dim, value_columns = (int)kernel.spec.problem.head_dim_v;
    auto shape = [&](const kernel::Strides& strides, int width, int rows, int heads, int box) { return kernel::tensor_map_shape(strides, width, rows, heads, p.batch, box); };
    const void* key = p.seq_kv > 0 ? p.key : p.query;  // without keys neither is read
    const void* value = p.seq_kv > 0 ? p.value : p.query;
    TILEWRIGHT_RETURN_IF_ERROR(maps_.get("query", p.query, dtype, shape(p.query_strides, columns, p.seq_q, p.heads_q, config.block_q), arguments.query));
    TILEWRIGHT_RETURN_IF_ERROR(maps_.get("key", key, dtype, shape(p.key_strides, columns, p.seq_kv, p.heads_kv, config.block_kv), arguments.key));
    return maps_.get("value", value, dtype, shape(p.value_strides, value_columns, p.seq_kv, p.heads_kv, config.block_kv), arguments.value);
}

template <class Parameters>
Status NvidiaDevice::launch_in_context(const NvidiaKernel& kernel, kernel::Sm90ArgumentsWith<Parameters>& arguments, Stream stream) {
    kernel::ForwardParameters& parameters = kernel::forward_of(arguments.parameters);
    bool persistent = kernel.spec.config.persistent;
    if (persistent) {
        TILEWRIGHT_ASSIGN_OR_RETURN(parameters.tiles_dealt, counters_.counter(stream));
    }
    if (kernel.takes_maps) TILEWRIGHT_RETURN_IF_ERROR(make_maps(kernel, parameters, arguments));
    void* argument = kernel.takes_maps ? static_cast<void*>(&arguments) : static_cast<void*>(&arguments.parameters);
    int64_t most_blocks = persistent ? int64_t{info_.arch.units} * kernel.resident_blocks : parameters.tiles;
    unsigned grid = (unsigned)std::min<int64_t>(parameters.tiles, most_blocks);
    for (parameters.phase = 0; parameters.phase < phases_of(kernel.spec.kind); ++parameters.phase)
        TILEWRIGHT_RETURN_IF_ERROR(driver_.launch(kernel.function, grid, 1u, 1u, kernel.threads, 1u, 1u, kernel.shared_bytes, stream, &argument, (void**)nullptr));
    return {};
}

Status NvidiaDevice::make_maps(const NvidiaKernel& kernel, kernel::Sm90DecodeArguments& arguments) {
    const kernel::DecodeParameters& decode = arguments.parameters;
    const kernel::ForwardParameters& p = decode.forward;
    const Problem& problem = kernel.spec.problem;
    const Config& config = kernel.spec.config;
    auto get = [&](const char* name, const void* address, const kernel::Strides& strides, int64_t columns, kernel::TensorMap& map) {
        int rows = p.seq_kv, blocks = p.batch, box = config.block_kv;
        if (kernel.spec.paged) {
            rows = 1 << decode.page_shift, box = std::min(rows, box);
            // A table's entries are trusted: any number of pages that the address space holds will do.
            int64_t page_bytes = std::max<int64_t>(1, 2 * strides.batch), most = (int64_t{1} << 46) / page_bytes;
            blocks = decode.pages > 0 ? decode.pages : static_cast<int>(std::min<int64_t>(most, INT32_MAX));
        }
        kernel::TensorMapShape shape = kernel::tensor_map_shape(strides, (int)columns, rows, p.heads_kv, blocks, box, kernel.spec.paged && config.block_q == 64);
        shape.promotion_bytes = 0;  // what is read once and whole gains nothing
        return maps_.get(name, p.seq_kv > 0 ? address : p.query, problem.dtype, shape, map);
    };
    TILEWRIGHT_RETURN_IF_ERROR(get("key", p.key, p.key_strides, problem.head_dim, arguments.key));
    return get("value", p.value, p.value_strides, problem.head_dim_v, arguments.value);
}

Status NvidiaDevice::launch_in_context(const NvidiaKernel& kernel, kernel::Sm90DecodeArguments& arguments, Stream stream) {
    if (kernel.takes_maps) TILEWRIGHT_RETURN_IF_ERROR(make_maps(kernel, arguments));
    void* argument = kernel.takes_maps ? static_cast<void*>(&arguments) : static_cast<void*>(&arguments.parameters);
    LaunchConfig config{{(unsigned)decode_units(kernel.spec, arguments.parameters), 1, 1}, {kernel.threads, 1, 1}, kernel.shared_bytes, stream};
    LaunchAttribute early{LaunchAttribute::programmatic_serialization, 0, {1}};
    if (kernel.takes_maps && kernel.spec.config.early_kb > 0) config.attributes = &early, config.attribute_count = 1;
    return driver_.launch_as(&config, kernel.function, &argument, (void**)nullptr);
}

Status NvidiaDevice::make_maps(const NvidiaKernel& kernel, kernel::Sm90BackwardArguments& arguments) {
    const kernel::PlainBackwardParameters& p = arguments.parameters;
    const kernel::ForwardParameters& f = p.forward;
    const Problem& problem = kernel.spec.problem;
    const Config& config = kernel.spec.config;
    bool over_keys = is_over_keys(kernel.spec.kind);
    // Without queries or keys what lies along them is not read.
    const void* any = f.seq_q > 0 ? f.query : f.key;
    auto get = [&](const char* name, const void* address, const kernel::Strides& strides, int64_t columns, bool of_keys, kernel::TensorMap& map) {
        int rows = of_keys ? f.seq_kv : f.seq_q, heads = of_keys ? f.heads_kv : f.heads_q, box = of_keys ? config.block_kv : config.block_q;
        return maps_.get(name, rows > 0 ? address : any, problem.dtype, kernel::tensor_map_shape(strides, (int)columns, rows, heads, f.batch, box), map);
    };
    kernel::TensorMap &query = over_keys ? arguments.scored : arguments.row_scored, &key = over_keys ? arguments.row_scored : arguments.scored;
    kernel::TensorMap &out_gradient = over_keys ? arguments.carried : arguments.row_carried, &value = over_keys ? arguments.row_carried : arguments.carried;
    TILEWRIGHT_RETURN_IF_ERROR(get("query", f.query, f.query_strides, problem.head_dim, false, query));
    TILEWRIGHT_RETURN_IF_ERROR(get("key", f.key, f.key_strides, problem.head_dim, true, key));
    TILEWRIGHT_RETURN_IF_ERROR(get("value", f.value, f.value_strides, problem.head_dim_v, true, value));
    return get("out_gradient", p.out_gradient, p.out_gradient_strides, problem.head_dim_v, false, out_gradient);
}

Status NvidiaDevice::launch_in_context(const NvidiaKernel& kernel, kernel::Sm90BackwardArguments& arguments, Stream stream) {
    kernel::ForwardParameters& forward = arguments.parameters.forward;
    int64_t most_blocks = forward.tiles;
    if (kernel.takes_maps) {  // such kernels draw their tiles
        TILEWRIGHT_RETURN_IF_ERROR(make_maps(kernel, arguments));
        TILEWRIGHT_ASSIGN_OR_RETURN(forward.tiles_dealt, counters_.counter(stream));
        most_blocks = int64_t{info_.arch.units} * kernel.resident_blocks;
    }
    void* argument = kernel.takes_maps ? static_cast<void*>(&arguments) : static_cast<void*>(&arguments.parameters);
    return driver_.launch(kernel.function, (unsigned)std::min<int64_t>(forward.tiles, most_blocks), 1u, 1u, kernel.threads, 1u, 1u, kernel.shared_bytes, stream, &argument, (void**)nullptr);
}

Result<std::vector<double>> NvidiaDevice::time_us(int launches, const std::function<Status()>& before, const std::function<Status()>& launch) {
    std::vector<double> times;
    Status status = with_context([&]() -> Status {
        Events events(driver_);
        std::vector<std::pair<Event, Event>> spans;
        for (int i = 0; i < launches; ++i) {
            if (before) TILEWRIGHT_RETURN_IF_ERROR(before());
            TILEWRIGHT_ASSIGN_OR_RETURN(Event start, events.record_on_default_stream());
            TILEWRIGHT_RETURN_IF_ERROR(launch());
            TILEWRIGHT_ASSIGN_OR_RETURN(Event end, events.record_on_default_stream());
            spans.push_back({start, end});
        }
        for (auto [start, end] : spans) {
            float milliseconds = 0;
            TILEWRIGHT_RETURN_IF_ERROR(driver_.synchronize_event(end));
            TILEWRIGHT_RETURN_IF_ERROR(driver_.elapsed_ms(&milliseconds, start, end));
            times.push_back(1e3 * milliseconds);
        }
        return {};
    });
    if (!status.ok()) return status;
    return times;
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const Driver& driver, int index) {
    TILEWRIGHT_ASSIGN_OR_RETURN(DeviceInfo info, describe_device(driver, index));
    DeviceHandle handle = 0;
    int major = 0, minor = 0;
    Context context = nullptr;
    TILEWRIGHT_RETURN_IF_ERROR(driver.device_get(&handle, index));
    TILEWRIGHT_RETURN_IF_ERROR(driver.device_attribute(&major, attribute::compute_major, handle));
    TILEWRIGHT_RETURN_IF_ERROR(driver.device_attribute(&minor, attribute::compute_minor, handle));
    TILEWRIGHT_RETURN_IF_ERROR(driver.retain_primary(&context, handle));
    auto device = std::make_unique<NvidiaDevice>(driver, handle, context, std::move(info), major, minor);
    TILEWRIGHT_RETURN_IF_ERROR(device->prepare());
    return std::unique_ptr<Device>(std::move(device));
}

}  // namespace tilewright::nvidia
