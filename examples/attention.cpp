// Grouped-head causal attention on any device: link tilewright, describe the problem, call.
#include "tilewright/attention.h"

#include <cstdio>
#include <random>
#include <vector>

using namespace tilewright;

static int fail(const Status& status) {
    std::fprintf(stderr, "%s: %s\n", name(status.code()), status.message().c_str());
    return 1;
}

int main(int argc, char** argv) {
    AttentionOptions options;
    if (argc > 1) options.device = argv[1];  // "cpu:0", "nvidia:0", "amd:0"
    Result<Attention> attention = Attention::open(options);
    if (!attention.ok()) return fail(attention.status());

    Result<Problem> problem = parse_problem("forward:b2,hq8,hkv2,sq300,skv300,d64,fp32,causal");
    if (!problem.ok()) return fail(problem.status());
    const Problem& p = *problem;

    // Query, key, value as they come from a model; out and lse are written by the call.
    const int64_t sizes[] = {p.batch * p.heads_q * p.seq_q * p.head_dim, p.batch * p.heads_kv * p.seq_kv * p.head_dim, p.batch * p.heads_kv * p.seq_kv * p.head_dim_v,
                             p.batch * p.heads_q * p.seq_q * p.head_dim_v, p.batch * p.heads_q * p.seq_q};
    std::vector<void*> device;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (int64_t size : sizes) {
        std::vector<float> host(static_cast<size_t>(size));
        for (float& x : host) x = normal(random);
        Result<void*> memory = attention->allocate(size * 4);
        if (!memory.ok()) return fail(memory.status());
        if (Status copied = attention->copy_to_device(*memory, host.data(), size * 4); !copied.ok()) return fail(copied);
        device.push_back(*memory);
    }

    ForwardTensors tensors;
    tensors.query = dense(const_cast<const void*>(device[0]), p.heads_q, p.seq_q, p.head_dim);
    tensors.key = dense(const_cast<const void*>(device[1]), p.heads_kv, p.seq_kv, p.head_dim);
    tensors.value = dense(const_cast<const void*>(device[2]), p.heads_kv, p.seq_kv, p.head_dim_v);
    tensors.out = dense(device[3], p.heads_q, p.seq_q, p.head_dim_v);
    tensors.lse = static_cast<float*>(device[4]);
    if (Status done = attention->forward(p, tensors); !done.ok()) return fail(done);
    if (Status done = attention->synchronize(); !done.ok()) return fail(done);

    std::vector<float> lse(static_cast<size_t>(sizes[4]));
    if (Status copied = attention->copy_to_host(lse.data(), device[4], sizes[4] * 4); !copied.ok()) return fail(copied);
    std::printf("%s\nconfig %s\nlse of the first and last query: %.4f %.4f\n", to_text(p).c_str(), to_json(attention->lookup(p).config).c_str(), lse.front(), lse.back());
    for (void* memory : device)
        if (Status freed = attention->free(memory); !freed.ok()) return fail(freed);
}
