// NVIDIA sm_90a, decoding: a block works on a unit of a line, part after part; a warp of it keeps the copy engine busy with keys and values.
#pragma once
#include "sm90_decode_loader.h"

namespace tilewright::kernel {

template <class Config_, class Products = Sm90DecodeProducts<Config_, Config_::block_q == 64>>
struct Sm90Decode : Products, nvidia::Merging<Config_, 1, 32 * Products::warps> {
    using Config = Config_;
    using Element = typename Config::Element;
    using Output = typename Products::Output;
    using Rounded = typename Products::Rounded;
    using Arguments = Sm90DecodeArguments;
    using Shared = hopper::DecodeShared<Config>;
    using Loader = hopper::DecodeLoader<Config>;
    static constexpr int block_kv = Config::block_kv, warps = Products::warps, sharers = Products::sharers;
    static constexpr int threads = sm90_decode_threads(Shared::shape), shared_bytes = sm90_decode_shared_bytes(Shared::shape);
    static_assert(Config::aligned, "the copy engine needs multiples of 16 bytes");
    static_assert(threads == 32 * (warps + 1) && Products::query_bytes == Shared::query_bytes);

    struct Pipeline;
    struct Values {
        typename Products::ValueTile tile;
        bool cleaned;  // of garbage
        Pipeline& pipeline;
    };

    struct Pipeline {
        const DecodeParameters& decode;
        Shared shared;
        Part<Config> part;
        int box_shift, kv = 0;  // kv: the tile whose values come next
        hopper::Ring<Config::stages> key_ring, value_ring;

        TILEWRIGHT_DEVICE void start(const Part<Config>& next) { part = next, kv = next.kv_end - 1; }
        TILEWRIGHT_DEVICE typename Products::Query query() { return Products::load_query(decode.forward, part, shared.query()); }
        TILEWRIGHT_DEVICE typename Products::Keys keys() {
            ptx::barrier_wait(shared.keys_full(key_ring.stage), key_ring.parity);
            return Products::keys_at(shared.keys(key_ring.stage), box_shift);
        }
        TILEWRIGHT_DEVICE Values values() {
            unsigned tile = shared.values(value_ring.stage);
            ptx::barrier_wait(shared.values_full(value_ring.stage), value_ring.parity);
            return {Products::values_at(tile, box_shift), clean(tile), *this};
        }
        TILEWRIGHT_DEVICE void release_query() {}
        TILEWRIGHT_DEVICE void release_keys() { release(shared.keys_free(key_ring.stage)), key_ring.advance(); }
        TILEWRIGHT_DEVICE void release_values() { release(shared.values_free(value_ring.stage)), value_ring.advance(), --kv; }
        TILEWRIGHT_DEVICE void take_turn() {}
        TILEWRIGHT_DEVICE void pass_turn() {}

        // Sums of workers that saw different keys of the same rows.
        TILEWRIGHT_DEVICE void await_merged() { nvidia::meet<1, 32 * warps>(); }
        TILEWRIGHT_DEVICE void await_sums() { nvidia::meet<1, 32 * warps>(); }
        TILEWRIGHT_DEVICE RowSums sums(int worker) const {
            float* first = shared.sums + worker * 16 * (Shared::sum_pitch + 2);
            return {first, first + 16 * Shared::sum_pitch, Shared::sum_pitch};
        }
        TILEWRIGHT_DEVICE RowSums own_sums() const { return sums(threadIdx.x / 32); }
        TILEWRIGHT_DEVICE void load_sums(int worker, int row, int column, float (&state)[2], float (&x)[4]) const {
            RowSums from = sums(worker);
            float4 all = *(const float4*)(from.out + row * from.stride + column);
            x[0] = all.x, x[1] = all.y, x[2] = all.z, x[3] = all.w;
            state[0] = from.state[2 * row], state[1] = from.state[2 * row + 1];
        }

    private:
        static TILEWRIGHT_DEVICE void release(unsigned barrier) { Products::settle_reads(), hopper::release(barrier); }
        // What lies behind the last key may be anything, and 0 * NaN is not 0; nor is what a mask hides. True if any garbage was visible to some rows.
        TILEWRIGHT_DEVICE bool clean(unsigned tile) {
            constexpr int pieces = sm90_panels(Config::head_dim_v) * 8;
            int first = Products::first_key(), existing = part.seq_kv - kv * block_kv - first;
            bool short_of_keys = existing < Products::own_keys, looks = false, cleaned = false;
            if (short_of_keys)
                for (int i = max_of(0, existing) * pieces + Products::reader(); i < Products::own_keys * pieces; i += Products::readers)
                    ptx::store_shared(Products::value_place(tile, box_shift, first + i / pieces, i % pieces), uint4{});
            if constexpr (nvidia::hides_values<Config>) {
                looks = nvidia::hides<Config>(part, kv);
                auto place = [&](int i) { return Products::value_place(tile, box_shift, first + i / pieces, i % pieces); };
                if (looks) Products::readers_meet(false), cleaned = nvidia::clean<Element, Products::own_keys * pieces, Products::readers>(Products::reader(), place);
            }
            if (short_of_keys || looks) ptx::fence_async(), cleaned = Products::readers_meet(cleaned);
            return cleaned;
        }
    };

    static TILEWRIGHT_DEVICE void start_output(Output& output, Rounded& p, const Values& values) {
        Products::multiply_values(output, p, values.tile);
        if constexpr (nvidia::hides_values<Config>) {
            if (!values.cleaned) return;
            Products::template finish<0>(output);
            const Pipeline& from = values.pipeline;
            const ForwardParameters& f = from.decode.forward;
            auto rows = RowsOfSequence<Config::paged>::of(from.decode, from.part.batch);
            int first = from.kv * block_kv + Products::first_key();
            nvidia::add_garbage<Config>(output, f, from.part, first, first + Products::own_keys,
                                        [&](int key) { return rows.template at<Element>(f.value, f.value_strides, from.part.batch, from.part.kv_head, key); });
        }
    }

    template <class Body>
    static TILEWRIGHT_DEVICE void for_each_part(const Arguments& arguments, char* raw_shared, Body&& body) {
        const DecodeParameters& decode = arguments.parameters;
        Shared shared(raw_shared);
        bool loads = threadIdx.x >= 32 * warps;
        if constexpr (Config::early_kb > 0) ptx::start_later_kernels();
        if (threadIdx.x == 0) shared.init_barriers(warps);
        if (threadIdx.x == 32 * warps) ptx::fetch_map(&arguments.key), ptx::fetch_map(&arguments.value);
        // Until earlier kernels have ended lengths may change yet, but where there are none all is known before.
        int lines = line_count<Config>(decode.forward), line = blockIdx.x % lines, unit = blockIdx.x / lines;
        Parts<Config, nvidia::WarpLanes> parts(decode, line, unit);
        Part<Config> part;
        bool more = parts.next(part);
        if constexpr (Config::early_kb > 0)
            if (loads && more) Loader::ask_early(arguments, parts, part);
        __syncthreads();
        if constexpr (Config::early_kb > 0) {
            ptx::wait_for_earlier_kernels();
            if (decode.lengths) parts = {decode, line, unit}, more = parts.next(part);
        }
        if (loads) {
            Loader loader{arguments, shared};
            for (; more; more = parts.next(part)) loader.load(part);
        } else {
            Pipeline pipeline{decode, shared, {}, hopper::box_shift<Config>(decode)};
            for (; more; more = parts.next(part)) pipeline.start(part), body(pipeline.part, pipeline);
        }
    }
};

}  // namespace tilewright::kernel
