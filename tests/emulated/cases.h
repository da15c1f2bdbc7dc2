// Inputs, the float64 answer and the acceptance rule for emulated kernels. Every gap between rows and heads, and all that lies
// around the tensors, is NaN; so are the outputs before a run, and what lies around them must be untouched after it.
#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "kernels/parameters.h"

namespace tilewright::emulated {

enum class Type { fp32, fp16, bf16 };

// What a kernel was compiled for, and how to run it on host memory.
struct EmulatedKernel {
    std::string name;
    Type type;
    int head_dim, head_dim_v, block_q;
    kernel::Mask mask;
    bool packs_heads, softcap, bias, alibi, sink, rescaled, aligned;
    // `order`: of fibers.h, or of nvidia/machine.h. Empty, or what the kernel must not have done.
    std::string (*run)(const kernel::ForwardParameters& parameters, int order);
};

inline void PrintTo(const EmulatedKernel& kernel, std::ostream* to) { *to << kernel.name; }

struct Case {
    std::string name;
    int batch = 1, heads_q = 1, heads_kv = 1, seq_q = 1, seq_kv = 1;
    bool top_left = false;
    int window_left = -1, window_right = -1;  // of kernels with a window; -1: unbounded
    bool scale_is_given = false;              // else 1 / sqrt(head_dim)
    float scale = 0;
    float softcap = 2;
    float magnitude = 1;        // of queries
    int dominant_key = -1;      // queries are equal, and so are all keys but this one, whose score is `dominance` above theirs
    float dominance = 0;
    std::vector<int> odd_keys = {};  // of head 0: multiples of 3 have a NaN key, odd ones a NaN value, others infinities of both signs
    bool lowest_bias = false;   // row 0: all -infinity; other rows: the lowest finite number
};

// Runs the case once for each order and compares; empty, or what is wrong.
std::string check(const EmulatedKernel& kernel, const Case& c, const std::vector<int>& orders = {0});

float rounded(float x, Type type);

}  // namespace tilewright::emulated
