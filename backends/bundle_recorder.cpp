// From launch parameters to the fields, buffers and bytes of a bundle.
#include "backends/bundle_recorder.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "backends/decode_plan.h"
#include "backends/launch.h"
#include "kernels/arch/sm90_arguments.h"

namespace tilewright {
namespace {

using kernel::DecodeParameters;
using kernel::ForwardParameters;

struct Member {
    const char* name;
    size_t offset, size;
    const char* kind;
};
#define TILEWRIGHT_MEMBER_OF(Struct, member, kind) \
    Member { #member, offsetof(Struct, member), sizeof(Struct::member), kind }
#define TILEWRIGHT_MEMBER(member, kind) TILEWRIGHT_MEMBER_OF(ForwardParameters, member, kind)
#define TILEWRIGHT_STRIDES(member)                                                                                           \
    Member{#member ".batch", offsetof(ForwardParameters, member) + offsetof(kernel::Strides, batch), 8, "int64"},            \
        Member{#member ".head", offsetof(ForwardParameters, member) + offsetof(kernel::Strides, head), 8, "int64"}, Member { \
#member ".row", offsetof(ForwardParameters, member) + offsetof(kernel::Strides, row), 8, "int64"                     \
    }
constexpr Member members[] = {
    TILEWRIGHT_MEMBER(query, "pointer"),       TILEWRIGHT_MEMBER(key, "pointer"),
    TILEWRIGHT_MEMBER(value, "pointer"),       TILEWRIGHT_MEMBER(out, "pointer"),
    TILEWRIGHT_MEMBER(lse, "pointer"),         TILEWRIGHT_MEMBER(bias, "pointer"),
    TILEWRIGHT_MEMBER(slope, "pointer"),       TILEWRIGHT_MEMBER(sink, "pointer"),
    TILEWRIGHT_STRIDES(query_strides),         TILEWRIGHT_STRIDES(key_strides),
    TILEWRIGHT_STRIDES(value_strides),         TILEWRIGHT_STRIDES(out_strides),
    TILEWRIGHT_STRIDES(bias_strides),          TILEWRIGHT_MEMBER(bias_column_stride, "int64"),
    TILEWRIGHT_MEMBER(batch, "int32"),         TILEWRIGHT_MEMBER(heads_q, "int32"),
    TILEWRIGHT_MEMBER(heads_kv, "int32"),      TILEWRIGHT_MEMBER(seq_q, "int32"),
    TILEWRIGHT_MEMBER(seq_kv, "int32"),        TILEWRIGHT_MEMBER(scale, "float32"),
    TILEWRIGHT_MEMBER(softcap, "float32"),     TILEWRIGHT_MEMBER(diagonal, "int32"),
    TILEWRIGHT_MEMBER(window_left, "int32"),   TILEWRIGHT_MEMBER(window_right, "int32"),
    TILEWRIGHT_MEMBER(section_heads, "int32"), TILEWRIGHT_MEMBER(tiles, "int32"),
    TILEWRIGHT_MEMBER(scores, "pointer"),      TILEWRIGHT_MEMBER(phase, "int32"),
    TILEWRIGHT_MEMBER(tiles_dealt, "pointer"),
};
#define TILEWRIGHT_DECODE(member, kind) TILEWRIGHT_MEMBER_OF(DecodeParameters, member, kind)
constexpr Member decode_members[] = {  // behind those of its ForwardParameters
    TILEWRIGHT_DECODE(lengths, "pointer"),  TILEWRIGHT_DECODE(block_table, "pointer"), TILEWRIGHT_DECODE(table_stride, "int64"),
    TILEWRIGHT_DECODE(page_shift, "int32"), TILEWRIGHT_DECODE(pages, "int32"),         TILEWRIGHT_DECODE(top_left, "int32"),
    TILEWRIGHT_DECODE(units, "int32"),      TILEWRIGHT_DECODE(partial_out, "pointer"), TILEWRIGHT_DECODE(partial_state, "pointer"),
    TILEWRIGHT_DECODE(arrived, "pointer"),
};
static_assert(offsetof(DecodeParameters, forward) == 0);
#undef TILEWRIGHT_DECODE
#undef TILEWRIGHT_MEMBER
#undef TILEWRIGHT_MEMBER_OF
#undef TILEWRIGHT_STRIDES

// A member that is missing above leaves a gap of more than padding.
template <size_t count>
constexpr bool cover_all(const Member (&list)[count], size_t begin, size_t size, size_t alignment) {
    size_t end = begin;
    for (const Member& member : list) {
        if (member.offset < end || member.offset - end >= member.size) return false;
        end = member.offset + member.size;
    }
    return size - end < alignment;
}
static_assert(cover_all(members, 0, sizeof(ForwardParameters), alignof(ForwardParameters)), "list every member of ForwardParameters here, in order");
static_assert(cover_all(decode_members, sizeof(ForwardParameters), sizeof(DecodeParameters), alignof(DecodeParameters)), "list every member of DecodeParameters here, in order");

std::vector<Member> members_of(const KernelSpec& spec) {
    std::vector<Member> list(std::begin(members), std::end(members));
    if (spec.kind == KernelKind::attention_decode) list.insert(list.end(), std::begin(decode_members), std::end(decode_members));
    return list;
}

const void* pointer_at(const void* parameters, const Member& member) {
    const void* address = nullptr;
    memcpy(&address, static_cast<const char*>(parameters) + member.offset, sizeof address);
    return address;
}
bool is_pointer(const Member& member) { return std::string_view(member.kind) == "pointer"; }
bool is_written(std::string_view name) {
    for (const char* written : {"out", "lse", "scores", "tiles_dealt", "partial_out", "partial_state", "arrived"})
        if (name == written) return true;
    return false;
}

struct RecordedKernel : Kernel {
    CodeObject object;
    KernelSpec spec;
    KernelSource source;
};

}  // namespace

BundleRecorder::BundleRecorder(const Arch& arch, std::string toolchain, int64_t static_shared_bytes)
    : toolchain_(std::move(toolchain)), static_shared_bytes_(static_shared_bytes) {
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
    auto kernel = std::make_unique<RecordedKernel>();
    kernel->object = object, kernel->spec = spec, kernel->source = source;
    return std::unique_ptr<Kernel>(std::move(kernel));
}

// After the first argument that points there: a buffer that query, key and value share is "query".
void BundleRecorder::name_buffers(const KernelSpec& spec, const void* parameters) {
    for (Allocation& allocation : allocations_) allocation.name.clear();
    for (const Member& member : members_of(spec)) {
        if (!is_pointer(member)) continue;
        auto* allocation = const_cast<Allocation*>(find(pointer_at(parameters, member)));
        if (allocation && allocation->name.empty()) allocation->name = member.name;
    }
    for (const Allocation& allocation : allocations_)
        if (!allocation.name.empty())
            bundle_->buffers.push_back({allocation.name, std::string(reinterpret_cast<const char*>(allocation.begin()), static_cast<size_t>(allocation.bytes)),
                                        is_written(allocation.name)});
}

void BundleRecorder::add_fields(const KernelSpec& spec, const void* parameters, int64_t base) {
    for (const Member& member : members_of(spec)) {
        BundleField field;
        field.name = member.name, field.kind = member.kind;
        field.offset = base + static_cast<int64_t>(member.offset), field.size = static_cast<int64_t>(member.size);
        if (is_pointer(member)) {
            if (auto found = place(pointer_at(parameters, member)); found.ok()) field.buffer = found->first, field.buffer_offset = found->second;
        } else {
            memcpy(bundle_->arguments.data() + field.offset, static_cast<const char*>(parameters) + member.offset, member.size);
        }
        bundle_->fields.push_back(std::move(field));
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
        bundle_->fields.push_back(std::move(field));
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
    ForwardParameters parameters = given;
    fill_work_order(spec, parameters);
    if (parameters.tiles == 0) return invalid_argument("the problem has no query: there is nothing to launch");
    if (arch.backend == "nvidia" && !parameters.tiles_dealt) {
        TILEWRIGHT_ASSIGN_OR_RETURN(void* counter, allocate(sizeof(unsigned)));
        TILEWRIGHT_RETURN_IF_ERROR(fill(counter, 0, sizeof(unsigned)));
        parameters.tiles_dealt = static_cast<unsigned*>(counter);
    }
    TILEWRIGHT_RETURN_IF_ERROR(begin_bundle(kernel, &parameters));
    // A persistent kernel is right with any number of blocks: one a unit.
    bundle_->grid = {spec.config.persistent ? std::min(parameters.tiles, arch.units) : parameters.tiles, 1, 1};
    bool maps = arch.family == Family::sm90 && kernel::takes_tensor_maps(static_cast<int>(size_of(spec.problem.dtype)), spec.aligned);
    bundle_->arguments.assign(maps ? sizeof(kernel::Sm90Arguments) : sizeof(ForwardParameters), '\0');
    bundle_->argument_alignment = maps ? alignof(kernel::Sm90Arguments) : alignof(ForwardParameters);
    if (maps) add_maps(spec, parameters);
    add_fields(spec, &parameters, maps ? offsetof(kernel::Sm90Arguments, parameters) : 0);
    return validate(*bundle_);
}

Status BundleRecorder::launch(Kernel& kernel, const DecodeParameters& parameters, void*) {
    const KernelSpec& spec = static_cast<const RecordedKernel&>(kernel).spec;
    if (decodes_by_copy_engine(spec, info_.arch)) return {StatusCode::unsupported, "a bundle holds no decode by the copy engine"};
    int units = decode_units(spec, parameters);
    if (units == 0) return invalid_argument("the problem has no query: there is nothing to launch");
    TILEWRIGHT_RETURN_IF_ERROR(begin_bundle(kernel, &parameters));
    bundle_->grid = {units, 1, 1};
    bundle_->arguments.assign(sizeof parameters, '\0'), bundle_->argument_alignment = alignof(DecodeParameters);
    add_fields(spec, &parameters, 0);
    return validate(*bundle_);
}

// All but grid and arguments.
Status BundleRecorder::begin_bundle(const Kernel& kernel, const void* parameters) {
    const auto& recorded = static_cast<const RecordedKernel&>(kernel);
    const KernelSpec& spec = recorded.spec;
    const Arch& arch = info_.arch;
    for (const Member& member : members_of(spec))
        if (is_pointer(member) && pointer_at(parameters, member) && !find(pointer_at(parameters, member)))
            return invalid_argument(std::string(member.name) + " points to nothing that was allocated here");

    bundle_.emplace();
    bundle_->backend = arch.backend, bundle_->arch = arch.name;
    bundle_->problem = to_text(spec.problem), bundle_->config = to_json(spec.config), bundle_->toolchain = toolchain_;
    bundle_->kernel = recorded.source.entry, bundle_->code = recorded.object.bytes;
    bundle_->block = {recorded.source.threads, 1, 1};
    bundle_->dynamic_shared_bytes = recorded.source.shared_bytes, bundle_->static_shared_bytes = static_shared_bytes_;
    name_buffers(spec, parameters);
    return {};
}

Result<std::vector<double>> BundleRecorder::time_us(int, const std::function<Status()>&, const std::function<Status()>&) {
    return Status(StatusCode::unsupported, "a recorder runs nothing that could be timed");
}
Result<int> BundleRecorder::resident_blocks(Kernel&) { return Status(StatusCode::unsupported, "a recorder has no occupancy"); }

}  // namespace tilewright
