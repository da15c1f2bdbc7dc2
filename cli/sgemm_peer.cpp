// OpenBLAS by dlopen.
#include "cli/sgemm_peer.h"

#include <chrono>
#include <cstdlib>

#include "backends/cpu/cpu_features.h"

namespace tilewright::cli {
namespace {

constexpr int n = 2048;
constexpr int row_major = 101, not_transposed = 111;  // CBLAS constants

}  // namespace

Result<SgemmPeer> SgemmPeer::open(int threads) {
    int floats = cpu_features().vector_floats;
    if (floats > 4) setenv("OPENBLAS_CORETYPE", floats == 16 ? "SkylakeX" : "Haswell", 0);
    SgemmPeer peer;
    TILEWRIGHT_ASSIGN_OR_RETURN(peer.library_, SharedLibrary::open("libopenblas.so.0"));
    void (*set_threads)(int) = nullptr;
    TILEWRIGHT_RETURN_IF_ERROR(peer.library_.bind("cblas_sgemm", peer.sgemm_));
    TILEWRIGHT_RETURN_IF_ERROR(peer.library_.bind("openblas_set_num_threads", set_threads));
    set_threads(threads);
    peer.a_.resize(n * n), peer.b_.resize(n * n), peer.c_.resize(n * n);
    unsigned state = 1;
    for (std::vector<float>* matrix : {&peer.a_, &peer.b_})
        for (float& x : *matrix) x = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) / (1 << 23) - 1;
    return peer;
}

double SgemmPeer::run() {
    auto start = std::chrono::steady_clock::now();
    sgemm_(row_major, not_transposed, not_transposed, n, n, n, 1, a_.data(), n, b_.data(), n, 0, c_.data(), n);
    return 2.0 * n * n * n / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() * 1e-9;
}

std::string SgemmPeer::core() const {
    char* (*core_name)() = nullptr;
    return library_.bind("openblas_get_corename", core_name).ok() ? core_name() : "unknown";
}

}  // namespace tilewright::cli
