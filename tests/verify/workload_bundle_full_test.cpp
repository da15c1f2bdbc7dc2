// Bundles: complete, the same when read back, and in agreement with the code object that they carry.
#include "verify/workload_bundle.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "backends/amd/amd_backend.h"
#include "backends/amd/code_object.h"
#include "core/process.h"
#include "core/scratch_directory.h"
#include "kernels/parameters.h"
#include "verify/device_workload.h"
#include "verify/element.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

struct Made {
    Bundle bundle;
    PreparedCheck prepared;
    std::vector<BuiltKernel> kernels;
};

Config small_config(const Arch& arch, const Problem& problem) {
    if (problem.operation == Operation::backward) return default_backward_config(problem, arch, true);
    Config config;
    config.block_q = 64, config.block_kv = 32, config.workers = 4;
    config.blocks = arch.family == Family::cdna ? 2 : 4;
    return config;
}

class WorkloadBundle : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        backend_ = amd::make_backend();
        if (auto toolchain = backend_->toolchain(); !toolchain.ok()) GTEST_SKIP() << toolchain.status().message();
    }
    Made make(const std::string& problem, const std::string& arch_name, Layout layout = Layout::rows_first) {
        const Arch& arch = *find_arch(arch_name);
        CheckOptions options;
        options.max_rows = 20, options.workload.layout = layout;
        Made made{{}, *prepare_check(*parse_problem(problem), options), {}};
        CallTraits traits = traits_of(made.prepared.workload);
        auto plan = plan_operation(made.prepared.workload.problem, small_config(arch, made.prepared.workload.problem), arch, traits);
        EXPECT_TRUE(plan.ok()) << plan.status().message();
        for (const KernelSpec& spec : plan->kernels) {
            auto source = generate(spec, arch);
            EXPECT_TRUE(source.ok()) << source.status().message();
            auto object = backend_->compile(*source, arch);
            EXPECT_TRUE(object.ok()) << object.status().message();
            made.kernels.push_back({*source, *object});
        }
        auto bundle = make_bundle(*backend_, arch, made.prepared, *plan, made.kernels);
        EXPECT_TRUE(bundle.ok()) << bundle.status().message();
        if (bundle.ok()) made.bundle = *bundle;
        return made;
    }
    std::unique_ptr<Backend> backend_;
};

const BundleField& field(const BundleLaunch& launch, const std::string& name) {
    auto found = std::ranges::find(launch.fields, name, &BundleField::name);
    EXPECT_NE(found, launch.fields.end()) << name;
    return *found;
}
const BundleField& field(const Bundle& bundle, const std::string& name) { return field(bundle.launches.at(0), name); }
template <class T>
T value(const BundleLaunch& launch, const std::string& name) {
    T number;
    EXPECT_EQ(field(launch, name).size, int64_t{sizeof number});
    memcpy(&number, launch.arguments.data() + field(launch, name).offset, sizeof number);
    return number;
}
template <class T>
T value(const Bundle& bundle, const std::string& name) {
    return value<T>(bundle.launches.at(0), name);
}

Result<Bundle> written_and_read(const Bundle& bundle) {
    TILEWRIGHT_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::create());
    TILEWRIGHT_RETURN_IF_ERROR(write_bundle(scratch.file("bundle"), bundle));
    return read_bundle(scratch.file("bundle"));
}

// Every size of the launch against the metadata of its code object.
void expect_agreement(const Bundle& bundle, const BundleLaunch& launch) {
    auto parsed = amd::read_code_object(launch.code);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const amd::KernelCode& kernel = parsed->kernels[0];
    EXPECT_EQ(bundle.arch, parsed->arch);
    EXPECT_EQ(launch.kernel, kernel.name);
    EXPECT_EQ(static_cast<int64_t>(launch.arguments.size()), kernel.argument_bytes);
    EXPECT_EQ(launch.argument_alignment, kernel.argument_alignment);
    ASSERT_EQ(kernel.arguments.size(), 1u);  // one struct by value, and nothing hidden
    EXPECT_EQ(kernel.arguments[0].size, kernel.argument_bytes);
    EXPECT_EQ(launch.static_shared_bytes, kernel.group_bytes);
    EXPECT_EQ(launch.dynamic_shared_bytes, 0);
    EXPECT_EQ(launch.block[0] * launch.block[1] * launch.block[2], kernel.max_threads);
    EXPECT_EQ(launch.block[0] % kernel.wave_size, 0);
    EXPECT_EQ(launch.fields.back().offset + launch.fields.back().size, kernel.argument_bytes);
}

TEST_P(WorkloadBundle, ReadBackItAgreesWithTheCodeObjectsMetadata) {
    Made made = make("forward:b2,hq4,hkv2,sq100,skv70,d64,bf16,causal", GetParam());
    auto read = written_and_read(made.bundle);
    ASSERT_TRUE(read.ok()) << read.status().message();

    ASSERT_EQ(read->launches.size(), 1u);
    EXPECT_EQ(read->launches[0].code, made.kernels[0].object.bytes);
    expect_agreement(*read, read->launches[0]);
    EXPECT_EQ(read->launches[0].grid, (std::array<int64_t, 3>{2 * 4 * 2, 1, 1}));
}

TEST_P(WorkloadBundle, ABackwardHoldsAllItsLaunchesInTheirOrder) {
    Made made = make("backward:b2,hq4,hkv2,sq100,skv70,d64,bf16,causal,sink", GetParam());
    auto read = written_and_read(made.bundle);
    ASSERT_TRUE(read.ok()) << read.status().message();
    std::vector<std::string> kernels;
    for (const BundleLaunch& launch : read->launches) {
        SCOPED_TRACE(launch.kernel);
        EXPECT_EQ(launch.code, made.kernels.at(kernels.size()).object.bytes);
        kernels.push_back(launch.kernel);
        expect_agreement(*read, launch);
        EXPECT_EQ(launch.grid[0], value<int32_t>(launch, "tiles"));
        for (const char* name : {"query", "out", "out_gradient", "lse_gradient", "query_gradient", "key_gradient", "value_gradient", "sink_gradient", "log_sums"})
            EXPECT_EQ(field(launch, name).buffer, name);
        EXPECT_EQ(field(launch, "deltas").buffer, "log_sums");  // one workspace
        EXPECT_GT(field(launch, "deltas").buffer_offset, 0);
        EXPECT_EQ(value<int32_t>(launch, "padded_queries"), 128);
    }
    EXPECT_THAT(kernels, testing::ElementsAre("attention_backward_prologue", "attention_backward_keys", "attention_backward_queries", "attention_backward_sink"));
    std::vector<std::string> expected, may_change;
    for (const BundleExpected& result : read->expected) expected.push_back(result.name);
    for (const BundleBuffer& buffer : read->buffers)
        if (buffer.written) may_change.push_back(buffer.name);
    EXPECT_THAT(expected, testing::ElementsAre("query_gradient", "key_gradient", "value_gradient", "sink_gradient"));
    EXPECT_THAT(may_change, testing::ElementsAre("query_gradient", "key_gradient", "value_gradient", "sink_gradient", "log_sums"));
}

TEST_P(WorkloadBundle, HoldsEveryArgumentAndBuffer) {
    Made made = make("forward:b2,hq4,hkv2,sq100,skv70,d64,fp16,window9:3,bias,alibi,sink,softcap", GetParam());
    const Bundle& bundle = made.bundle;
    const Workload& workload = made.prepared.workload;
    EXPECT_EQ(value<int32_t>(bundle, "batch"), 2);
    EXPECT_EQ(value<int32_t>(bundle, "seq_kv"), 70);
    EXPECT_EQ(value<int32_t>(bundle, "window_left"), 9);
    EXPECT_EQ(value<int32_t>(bundle, "tiles"), bundle.launches[0].grid[0]);
    EXPECT_EQ(value<float>(bundle, "scale"), workload.scale);
    EXPECT_EQ(value<int64_t>(bundle, "key_strides.row"), workload.key.strides[2]);
    EXPECT_EQ(value<int64_t>(bundle, "key"), 0);  // addresses are the replayer's
    EXPECT_EQ(bundle.problem, to_text(workload.problem));
    for (const char* name : {"query", "key", "value", "out", "lse", "bias", "slope", "sink"}) {
        EXPECT_EQ(field(bundle, name).buffer, name);
        EXPECT_EQ(std::ranges::count(bundle.buffers, name, &BundleBuffer::name), 1) << name;
    }
    EXPECT_EQ(field(bundle, "scores").buffer, "");
    const std::vector<unsigned char>& key = workload.buffers[static_cast<size_t>(workload.key.buffer)].bytes;
    auto buffer = std::ranges::find(bundle.buffers, "key", &BundleBuffer::name);
    EXPECT_EQ(buffer->contents, std::string(key.begin(), key.end()));
    EXPECT_EQ(field(bundle, "key").buffer_offset, workload.key.offset);
    EXPECT_FALSE(buffer->written);
    EXPECT_TRUE(std::ranges::find(bundle.buffers, "out", &BundleBuffer::name)->written);
}

TEST_P(WorkloadBundle, ADecodeHoldsItsLengthsPagesAndWorkspace) {
    Made made = make("decode:b3,hq8,hkv2,sq1,skv=loguniform(20,300),d64,bf16,page16", GetParam());
    const Bundle& bundle = made.bundle;
    const Workload& workload = made.prepared.workload;
    ASSERT_EQ(bundle.launches.size(), 1u);
    expect_agreement(bundle, bundle.launches[0]);
    EXPECT_EQ(bundle.launches[0].grid[0], value<int32_t>(bundle, "units") * 2);  // lines: KV heads
    EXPECT_EQ(value<int32_t>(bundle, "page_shift"), 4);
    for (const char* name : {"lengths", "block_table", "partial_out"}) EXPECT_EQ(field(bundle, name).buffer, name);
    EXPECT_EQ(field(bundle, "arrived").buffer, "partial_out");  // one workspace
    auto lengths = std::ranges::find(bundle.buffers, "lengths", &BundleBuffer::name);
    EXPECT_EQ(lengths->contents, std::string(reinterpret_cast<const char*>(workload.lengths.data()), workload.lengths.size() * 4));
    EXPECT_TRUE(std::ranges::find(bundle.buffers, "partial_out", &BundleBuffer::name)->written);
    auto scratch = ScratchDirectory::create();
    ASSERT_TRUE(scratch.ok());
    ASSERT_TRUE(write_bundle(scratch->file("bundle"), bundle).ok());
    EXPECT_TRUE(read_bundle(scratch->file("bundle")).ok());
}

INSTANTIATE_TEST_SUITE_P(Archs, WorkloadBundle, testing::Values("gfx90a", "gfx942", "gfx1100", "gfx1201"));

class OneBundle : public WorkloadBundle {};
INSTANTIATE_TEST_SUITE_P(Archs, OneBundle, testing::Values("gfx942"));

TEST_P(OneBundle, PackedTensorsShareOneBuffer) {
    Made made = make("forward:hq2,sq40,d64,bf16", GetParam(), Layout::packed);
    EXPECT_EQ(field(made.bundle, "query").buffer, "query");
    EXPECT_EQ(field(made.bundle, "key").buffer, "query");
    EXPECT_EQ(field(made.bundle, "value").buffer, "query");
    EXPECT_LT(field(made.bundle, "query").buffer_offset, field(made.bundle, "key").buffer_offset);
}

TEST_P(OneBundle, AcceptsTheReferenceAndNothingElse) {
    Made made = make("forward:hq2,sq40,d64,bf16", GetParam());
    const Bundle& bundle = made.bundle;
    ASSERT_EQ(bundle.expected.size(), 2u);
    EXPECT_GT(bundle.expected[0].tolerance, 0);
    EXPECT_LT(bundle.expected[0].tolerance, 0.1);
    std::vector<std::string> results;
    for (const BundleBuffer& buffer : bundle.buffers) results.push_back(buffer.contents);
    EXPECT_THAT(check_bundle(bundle, results), HasSubstr("is nan; expected"));
    for (const BundleExpected& expected : bundle.expected) {
        auto buffer = std::ranges::find(bundle.buffers, expected.buffer, &BundleBuffer::name) - bundle.buffers.begin();
        DType dtype = *parse_dtype(expected.element);
        for (size_t i = 0; i < expected.values.size(); ++i) {
            const auto& row = expected.rows[i / static_cast<size_t>(expected.columns)];
            int64_t at = static_cast<int64_t>(i) % expected.columns;
            for (size_t d = 0; d < 3; ++d) at += row[d] * expected.strides[d];
            store_element(dtype, results[static_cast<size_t>(buffer)].data() + expected.offset + at * static_cast<int64_t>(size_of(dtype)), expected.values[i]);
        }
    }
    EXPECT_EQ(check_bundle(bundle, results), "");
    auto lse = std::ranges::find(bundle.buffers, "lse", &BundleBuffer::name) - bundle.buffers.begin();
    std::string saved = results[static_cast<size_t>(lse)];
    store_element(DType::fp32, results[static_cast<size_t>(lse)].data() + bundle.expected[1].offset, bundle.expected[1].values[0] + 0.1);
    EXPECT_THAT(check_bundle(bundle, results), HasSubstr("lse of batch 0, head 0, row 0"));
    results[static_cast<size_t>(lse)] = saved;
    results[0][3] = static_cast<char>(~results[0][3]);
    EXPECT_THAT(check_bundle(bundle, results), HasSubstr("is an input"));
}

TEST_P(OneBundle, DamageIsNamed) {
    Made made = make("forward:hq2,sq40,d64,bf16", GetParam());
    auto scratch = ScratchDirectory::create();
    ASSERT_TRUE(scratch.ok());
    std::string directory = scratch->file("bundle"), json_file = directory + "/launch.json";
    ASSERT_TRUE(write_bundle(directory, made.bundle).ok());
    std::string json = *read_file(json_file);
    auto with = [&](const std::string& from, const std::string& to) {
        std::string changed = json;
        size_t at = changed.find(from);
        EXPECT_NE(at, changed.npos) << from;
        EXPECT_TRUE(write_file(json_file, changed.replace(at, from.size(), to)).ok());
        return read_bundle(directory).status().message();
    };
    EXPECT_THAT(with("\"version\": 1", "\"version\": 3"), HasSubstr("version 3; this reads versions 1 and 2"));
    EXPECT_THAT(with("\"file\": \"code.bin\"", "\"file\": \"../code.bin\""), HasSubstr("no file of a bundle"));
    EXPECT_THAT(with("\"name\": \"key\"", "\"name\": 7"), HasSubstr("malformed"));
    EXPECT_THAT(with("\"offset\": 8,", "\"offset\": 4,"), HasSubstr("overlaps"));
    EXPECT_THAT(with("\"buffer\": \"key\"", "\"buffer\": \"kay\""), HasSubstr("'kay', which is not there"));
    EXPECT_THAT(with("{", "["), HasSubstr("no JSON"));
    EXPECT_THAT(with("\"version\": 1", "\"version\": 2"), HasSubstr("malformed"));  // which has its launches in a list
    EXPECT_EQ(with("\"format\"", "\"format\""), "");
    std::filesystem::resize_file(directory + "/key.bin", 5);
    EXPECT_THAT(read_bundle(directory).status().message(), HasSubstr("'key.bin' has 5 bytes; launch.json says"));
    std::filesystem::remove(directory + "/key.bin");
    EXPECT_EQ(read_bundle(directory).status().code(), StatusCode::io);
    EXPECT_EQ(write_bundle("/proc/no/such", made.bundle).code(), StatusCode::io);
}

}  // namespace
}  // namespace tilewright
