// The peer that CPU kernels are measured beside: OpenBLAS's single-precision matrix product, if it is installed.
#pragma once
#include <string>
#include <vector>

#include "backends/shared_library.h"
#include "tilewright/status.h"

namespace tilewright::cli {

class SgemmPeer {
public:
    // unavailable without libopenblas. OpenBLAS 0.3.21 does not know recent processors and falls back to SSE code there; so
    // OPENBLAS_CORETYPE is set to what the processor's vectors allow, unless the caller has set it.
    static Result<SgemmPeer> open(int threads);
    // One n x n x n product, n = 2048; GFLOP/s by the clock on the wall.
    double run();
    std::string core() const;  // which of its kernels OpenBLAS uses

private:
    SharedLibrary library_;
    void (*sgemm_)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int) = nullptr;
    std::vector<float> a_, b_, c_;
};

}  // namespace tilewright::cli
