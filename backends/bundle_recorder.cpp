// From launch parameters to the fields, buffers and bytes of a bundle.
#include "backends/bundle_recorder.h"

#include <algorithm>
#include <cstring>

#include "backends/bundle_members.h"
#include "backends/decode_plan.h"
#include "backends/family_text.h"
#include "backends/launch.h"
#include "kernels/arch/sm90_arguments.h"

namespace tilewright {
namespace {

using bundle_members::is_pointer;
using bundle_members::Member;
using kernel::BackwardParameters;
using kernel::DecodeParameters;
using kernel::ForwardParameters;

const void* pointer_at(const void* parameters, const Member& member) {
    const void* address = nullptr;
    memcpy(&address, static_cast<const char*>(parameters) + member.offset, sizeof address);
    return address;
}

struct RecordedKernel : Kernel {
    CodeObject object;
    KernelSpec spec;
    KernelSource source;
    int64_t static_shared_bytes = -1;
};

}  // namespace

BundleRecorder::BundleRecorder(Backend& backend, const Arch& arch, std::string toolchain) : backend_(backend), toolchain_(std::move(toolchain)) {
    info_.id = arch.backend + ":bundle", info_.name = "recorder of " + arch.name, info_.arch = arch;
}

const BundleRecorder::Allocation* BundleRecorder::find(const void* address) const {
    for (const Allocation& allocation : allocations_)
        if (address >= allocation.begin() && address <= allocation.begin() + allocation.bytes) return &allocation;
    return nullptr;
}

Result<std::pair<std::string, int64_t>> BundleRecorder::place(const void* address) const {
    const Allocation* allocation = find(address);
    if (!allocation) return Status(StatusCode::not_found, "an address lies in nothing that was allocated here");
    return std::pair(allocation->name, static_cast<int64_t>(static_cast<const unsigned char*>(address) - allocation->begin()));
}

Result<void*> BundleRecorder::allocate(int64_t bytes) {
    if (bytes < 0) return invalid_argument("a size is " + std::to_string(bytes) + " bytes; it must be from 0 on");
    // One more than asked for: a pointer to the end of one buffer is none to the start of another.
    allocations_.push_back({std::make_unique<unsigned char[]>(static_cast<size_t>(bytes) + 1), bytes, ""});
    return static_cast<void*>(allocations_.back().begin());
}

Status BundleRecorder::free(void* address) {
    auto removed = std::erase_if(allocations_, [&](const Allocation& allocation) { return allocation.begin() == address; });
    return removed || !address ? Status() : invalid_argument("an address was not allocated here");
}

Status BundleRecorder::copy_to_device(void* to, const void* from, int64_t bytes) {
    if (bytes > 0) memcpy(to, from, static_cast<size_t>(bytes));
    return {};
}
Status BundleRecorder::copy_to_host(void* to, const void* from, int64_t bytes) { return copy_to_device(to, from, bytes); }
Status BundleRecorder::fill(void* to, unsigned char value, int64_t bytes) {
    if (bytes > 0) memset(to, value, static_cast<size_t>(bytes));
    return {};
}

Result<std::unique_ptr<Kernel>> BundleRecorder::load(const CodeObject& object, const KernelSpec& spec, const KernelSource& source) {
    TILEWRIGHT_ASSIGN_OR_RETURN(Resources resources, backend_.inspect(object));
    auto kernel = std::make_unique<RecordedKernel>();
    kernel->object = object, kernel->spec = spec, kernel->source = source, kernel->static_shared_bytes = resources.shared_bytes;
    return std::unique_ptr<Kernel>(std::move(kernel));
}

// After the first argument that points there: a buffer that query, key and value share is "query".
void BundleRecorder::name_buffers(const KernelSpec& spec, const void* parameters) {
    for (const Member& member : bundle_members::of(spec.kind)) {
        if (!is_pointer(member)) continue;
        auto* allocation = const_cast<Allocation*>(find(pointer_at(parameters, member)));
        if (!allocation || !allocation->name.empty()) continue;
        allocation->name = member.name;
        bundle_->buffers.push_back({allocation->name, std::string(reinterpret_cast<const char*>(allocation->begin()), static_cast<size_t>(allocation->bytes)),
                                    bundle_members::is_written(spec.kind, allocation->name)});
    }
}

void BundleRecorder::add_fields(const KernelSpec& spec, const void* parameters, int64_t base) {
    for (const Member& member : bundle_members::of(spec.kind)) {
        BundleField field;
        field.name = member.name, field.kind = member.kind;
        field.offset = base + static_cast<int64_t>(member.offset), field.size = static_cast<int64_t>(member.size);
        if (is_pointer(member)) {
            if (auto found = place(pointer_at(parameters, member)); found.ok()) field.buffer = found->first, field.buffer_offset = found->second;
        } else {
            memcpy(launch_.arguments.data() + field.offset, static_cast<const char*>(parameters) + member.offset, member.size);
        }
        launch_.fields.push_back(std::move(field));
    }
}

void BundleRecorder::add_maps(const KernelSpec& spec, const ForwardParameters& p) {
    auto add = [&](const char* name, size_t offset, const void* address, const kernel::TensorMapShape& shape) {
        BundleField field;
        field.name = name, field.kind = "tensor_map";
        field.offset = static_cast<int64_t>(offset), field.size = sizeof(kernel::TensorMap);
        if (auto found = place(address); found.ok()) field.buffer = found->first, field.buffer_offset = found->second;
        field.dims.assign(shape.dims, shape.dims + shape.rank), field.box.assign(shape.box, shape.box + shape.rank);
        field.strides.assign(shape.strides, shape.strides + shape.rank - 1);
        launch_.fields.push_back(std::move(field));
    };
    int columns = static_cast<int>(spec.problem.head_dim), value_columns = static_cast<int>(spec.problem.head_dim_v);
    const Config& c = spec.config;
    const void *key = p.seq_kv > 0 ? p.key : p.query, *value = p.seq_kv > 0 ? p.value : p.query;  // without keys neither is read
    using kernel::Sm90Arguments;
    add("query_map", offsetof(Sm90Arguments, query), p.query, tensor_map_shape(p.query_strides, columns, p.seq_q, p.heads_q, p.batch, c.block_q));
    add("key_map", offsetof(Sm90Arguments, key), key, tensor_map_shape(p.key_strides, columns, p.seq_kv, p.heads_kv, p.batch, c.block_kv));
    add("value_map", offsetof(Sm90Arguments, value), value, tensor_map_shape(p.value_strides, value_columns, p.seq_kv, p.heads_kv, p.batch, c.block_kv));
}

Status BundleRecorder::launch(Kernel& kernel, const ForwardParameters& given, void*) {
    const auto& recorded = static_cast<const RecordedKernel&>(kernel);
    const KernelSpec& spec = recorded.spec;
    const Arch& arch = info_.arch;
    if (phases_of(spec.kind) > 1) return {StatusCode::unsupported, std::string("a bundle holds no ") + name(spec.kind)};
    ForwardParameters parameters = given;
    fill_work_order(spec, parameters, arch.dies);
    if (parameters.tiles == 0) return invalid_argument("the problem has no query: there is nothing to launch");
    if (arch.backend == "nvidia" && !parameters.tiles_dealt) {
        TILEWRIGHT_ASSIGN_OR_RETURN(void* counter, allocate(sizeof(unsigned)));
        TILEWRIGHT_RETURN_IF_ERROR(fill(counter, 0, sizeof(unsigned)));
        parameters.tiles_dealt = static_cast<unsigned*>(counter);
    }
    TILEWRIGHT_RETURN_IF_ERROR(begin_launch(kernel, &parameters));
    // A persistent kernel is right with any number of blocks: one a unit.
    launch_.grid = {spec.config.persistent ? std::min(parameters.tiles, arch.units) : parameters.tiles, 1, 1};
    bool maps = arch.family == Family::sm90 && kernel::takes_tensor_maps(static_cast<int>(size_of(spec.problem.dtype)), spec.aligned);
    launch_.arguments.assign(maps ? sizeof(kernel::Sm90Arguments) : sizeof(ForwardParameters), '\0');
    launch_.argument_alignment = maps ? alignof(kernel::Sm90Arguments) : alignof(ForwardParameters);
    if (maps) add_maps(spec, parameters);
    add_fields(spec, &parameters, maps ? offsetof(kernel::Sm90Arguments, parameters) : 0);
    return end_launch();
}

Status BundleRecorder::launch(Kernel& kernel, const DecodeParameters& parameters, void*) {
    const KernelSpec& spec = static_cast<const RecordedKernel&>(kernel).spec;
    if (decodes_by_copy_engine(spec, info_.arch)) return {StatusCode::unsupported, "a bundle holds no decode by the copy engine"};
    int units = decode_units(spec, parameters);
    if (units == 0) return invalid_argument("the problem has no query: there is nothing to launch");
    TILEWRIGHT_RETURN_IF_ERROR(begin_launch(kernel, &parameters));
    launch_.grid = {units, 1, 1};
    launch_.arguments.assign(sizeof parameters, '\0'), launch_.argument_alignment = alignof(DecodeParameters);
    add_fields(spec, &parameters, 0);
    return end_launch();
}

Status BundleRecorder::launch(Kernel& kernel, const BackwardParameters& given, void*) {
    const KernelSpec& spec = static_cast<const RecordedKernel&>(kernel).spec;
    if (takes_copy_engine_backward(spec.problem, info_.arch, spec.aligned)) return {StatusCode::unsupported, "a bundle holds no backward by the copy engine"};
    if (takes_whole_parameters(spec)) return {StatusCode::unsupported, "a bundle holds no backward with a bias or of packed sequences"};
    BackwardParameters parameters = given;
    fill_work_order(spec, parameters, info_.arch.dies);
    if (parameters.forward.tiles == 0) return {};  // as on a device
    const kernel::PlainBackwardParameters& plain = parameters;
    TILEWRIGHT_RETURN_IF_ERROR(begin_launch(kernel, &plain));
    launch_.grid = {parameters.forward.tiles, 1, 1};
    launch_.arguments.assign(sizeof(kernel::PlainBackwardParameters), '\0'), launch_.argument_alignment = alignof(kernel::PlainBackwardParameters);
    add_fields(spec, &plain, 0);
    return end_launch();
}

// All but grid and arguments.
Status BundleRecorder::begin_launch(const Kernel& kernel, const void* parameters) {
    const auto& recorded = static_cast<const RecordedKernel&>(kernel);
    const KernelSpec& spec = recorded.spec;
    const Arch& arch = info_.arch;
    for (const Member& member : bundle_members::of(spec.kind))
        if (is_pointer(member) && pointer_at(parameters, member) && !find(pointer_at(parameters, member)))
            return invalid_argument(std::string(member.name) + " points to nothing that was allocated here");

    if (!bundle_) {
        bundle_.emplace();
        bundle_->backend = arch.backend, bundle_->arch = arch.name;
        bundle_->problem = to_text(spec.problem), bundle_->toolchain = toolchain_;
    }
    launch_ = {};
    launch_.config = to_json(spec.config), launch_.kernel = recorded.source.entry, launch_.code = recorded.object.bytes;
    launch_.block = {recorded.source.threads, 1, 1};
    launch_.dynamic_shared_bytes = recorded.source.shared_bytes, launch_.static_shared_bytes = recorded.static_shared_bytes;
    name_buffers(spec, parameters);
    return {};
}

Status BundleRecorder::end_launch() {
    bundle_->launches.push_back(std::move(launch_));
    return validate(*bundle_);
}

Result<std::vector<double>> BundleRecorder::time_us(int, const std::function<Status()>&, const std::function<Status()>&) {
    return Status(StatusCode::unsupported, "a recorder runs nothing that could be timed");
}
Result<int> BundleRecorder::resident_blocks(Kernel&) { return Status(StatusCode::unsupported, "a recorder has no occupancy"); }

}  // namespace tilewright
