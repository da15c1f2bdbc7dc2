// A decode call in a GPU's memory, by the public interface or with a config of the test's own.
#pragma once
#include <cstring>
#include <deque>

#include "backends/decode_plan.h"
#include "backends/launch.h"
#include "backends/registry.h"
#include "runtime/decode_call.h"
#include "runtime/opened.h"

namespace tilewright {

// A call whose tensors are copied to the device.
class OnDevice {
public:
    OnDevice(Attention& attention, DecodeCall& call) : attention_(attention), call_(call), tensors_(call.tensors()) {
        const Problem& p = call.problem;
        tensors_.query.data = copy(call.query.data(), call.query.size()), tensors_.key.data = copy(call.key.data(), call.key.size());
        tensors_.value.data = copy(call.value.data(), call.value.size());
        tensors_.out.data = copy(call.out.data(), call.out.size());
        tensors_.lse = static_cast<float*>(copy(call.lse.data(), call.lse.size() * 4));
        tensors_.lengths = static_cast<const int32_t*>(copy(call.lengths.data(), call.lengths.size() * 4));
        if (tensors_.block_table) tensors_.block_table = static_cast<const int32_t*>(copy(call.table.data(), call.table.size() * 4));
        if (p.bias) tensors_.bias.data = copy(call.bias.data(), call.bias.size());
        if (p.alibi) tensors_.alibi_slope = static_cast<const float*>(copy(call.slope.data(), call.slope.size() * 4));
        if (p.sink) tensors_.sink = static_cast<const float*>(copy(call.sink.data(), call.sink.size() * 4));
    }
    ~OnDevice() {
        for (void* address : memory_) EXPECT_TRUE(attention_.free(address).ok());
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

    DecodeTensors& tensors() { return tensors_; }

    // The workspace is zero for the first run of a number of splits and used again as it is.
    Status prepare(int splits) {
        TILEWRIGHT_ASSIGN_OR_RETURN(int64_t bytes, attention_.decode_workspace_bytes(call_.problem, splits));
        if (splits != tensors_.splits || !tensors_.workspace) {
            std::vector<char> zeros(static_cast<size_t>(bytes));
            tensors_.workspace = bytes ? copy(zeros.data(), zeros.size()) : nullptr, tensors_.workspace_bytes = bytes, tensors_.splits = splits;
        }
        return {};
    }
    Status poison() {
        std::fill(call_.out.begin(), call_.out.end(), 0xff), std::fill(call_.lse.begin(), call_.lse.end(), NAN);
        TILEWRIGHT_RETURN_IF_ERROR(attention_.copy_to_device(tensors_.out.data, call_.out.data(), static_cast<int64_t>(call_.out.size())));
        return attention_.copy_to_device(tensors_.lse, call_.lse.data(), static_cast<int64_t>(call_.lse.size() * 4));
    }
    Status launch(void* stream = nullptr) { return attention_.decode(call_.problem, tensors_, stream); }
    Status fetch() {
        TILEWRIGHT_RETURN_IF_ERROR(attention_.synchronize());
        TILEWRIGHT_RETURN_IF_ERROR(attention_.copy_to_host(call_.out.data(), tensors_.out.data, static_cast<int64_t>(call_.out.size())));
        return attention_.copy_to_host(call_.lse.data(), tensors_.lse, static_cast<int64_t>(call_.lse.size() * 4));
    }
    // Runs over outputs of NaN and brings them back.
    Status run(int splits) {
        TILEWRIGHT_RETURN_IF_ERROR(prepare(splits));
        TILEWRIGHT_RETURN_IF_ERROR(poison());
        TILEWRIGHT_RETURN_IF_ERROR(launch());
        return fetch();
    }
    // The call changes its lengths: the device's follow.
    Status update_lengths() { return attention_.copy_to_device(const_cast<int32_t*>(tensors_.lengths), call_.lengths.data(), static_cast<int64_t>(call_.lengths.size() * 4)); }

    // What the device's launch is given for this call.
    kernel::DecodeParameters parameters() const {
        const Problem& p = call_.problem;
        auto strides = [](const auto& t) { return kernel::Strides{t.batch_stride, t.head_stride, t.row_stride}; };
        kernel::DecodeParameters decode{};
        kernel::ForwardParameters& f = decode.forward = sized_parameters(p, default_scale(p), tensors_.softcap);
        f.query = tensors_.query.data, f.key = tensors_.key.data, f.value = tensors_.value.data, f.out = tensors_.out.data, f.lse = tensors_.lse;
        f.query_strides = strides(tensors_.query), f.key_strides = strides(tensors_.key), f.value_strides = strides(tensors_.value), f.out_strides = strides(tensors_.out);
        decode.lengths = tensors_.lengths, decode.block_table = tensors_.block_table, decode.table_stride = tensors_.table_stride;
        while (int64_t{1} << decode.page_shift < tensors_.page_size) ++decode.page_shift;
        return decode;
    }
    void* copy(const void* from, size_t bytes) {
        Result<void*> address = attention_.allocate(static_cast<int64_t>(bytes));
        EXPECT_TRUE(address.ok() && attention_.copy_to_device(*address, from, static_cast<int64_t>(bytes)).ok());
        memory_.push_back(*address);
        return *address;
    }

private:
    Attention& attention_;
    DecodeCall& call_;
    DecodeTensors tensors_;
    std::deque<void*> memory_;
};

}  // namespace tilewright
