// NVIDIA sm_80 and later, decoding: a block works on a unit of a line, part after part.
#pragma once
#include "nvidia_decode.h"
#include "sm80.h"

namespace tilewright::kernel {

template <class Config_>
struct Sm80Decode : Sm80<Config_>, nvidia::Merging<Config_, 0, Sm80<Config_>::threads> {
    using Config = Config_;
    using Element = typename Config::Element;
    using Base = Sm80<Config>;
    using Output = typename Base::Output;
    using KvRows = typename RowsOfSequence<Config::paged>::type;
    using Base::start_output;
    static constexpr int sharers = 1;

    struct Arguments {
        DecodeParameters parameters;
    };

    struct Pipeline;
    struct Values {  // which hold garbage that was cleaned
        unsigned tile;
        int kv;
        bool cleaned;
        Pipeline& pipeline;
    };
    struct Pipeline : Base::template PipelineOver<KvRows> {
        using Tiles = typename Base::template PipelineOver<KvRows>;
        using Tiles::Tiles;
        TILEWRIGHT_DEVICE Values values() {
            this->found_garbage = false;
            int kv = this->tile.kv_end - 1 - this->values_read;
            unsigned tile = Tiles::values();
            return {tile, kv, this->found_garbage, *this};
        }
    };
    static TILEWRIGHT_DEVICE void start_output(Output& output, typename Base::Rounded& p, const Values& values) {
        Base::start_output(output, p, values.tile);
        if constexpr (nvidia::hides_values<Config>) {
            if (!values.cleaned) return;
            const Pipeline& from = values.pipeline;
            int first = values.kv * Config::block_kv;
            nvidia::add_garbage<Config>(output, from.p, from.tile, first, first + Config::block_kv, [&](int key) {
                return from.template at<Element>(from.p.value, from.p.value_strides, from.tile.batch, from.tile.kv_head, key);
            });
        }
    }

    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_part(const Arguments& arguments, char* raw_shared, Body&& body) {
        const DecodeParameters& decode = arguments.parameters;
        unsigned shared = ptx::shared_address(raw_shared);
        int lines = line_count<Config>(decode.forward);
        Parts<Config, nvidia::WarpLanes> parts(decode, blockIdx.x % lines, blockIdx.x / lines);
        for (Part<Config> part; parts.next(part);) {
            Pipeline pipeline(decode.forward, shared, part, RowsOfSequence<Config::paged>::of(decode, part.batch));
            body(part, pipeline);
            ptx::copies_wait<0>();
            __syncthreads();  // all warps are done with the part's tiles
        }
    }
};

}  // namespace tilewright::kernel
