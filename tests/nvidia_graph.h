// The driver's functions that only tests need: capturing a stream into a graph, contexts of a caller.
#pragma once
#include "backends/nvidia/driver.h"

namespace tilewright::test {

using Graph = struct GraphHandle*;
using GraphExec = struct GraphExecHandle*;

struct GraphCalls {
    SharedLibrary library;
    int (*begin)(nvidia::Stream, int mode) = nullptr;
    int (*end)(nvidia::Stream, Graph*) = nullptr;
    int (*instantiate)(GraphExec*, Graph, unsigned long long) = nullptr;
    int (*launch)(GraphExec, nvidia::Stream) = nullptr;
    int (*destroy_exec)(GraphExec) = nullptr;
    int (*destroy)(Graph) = nullptr;
    int (*create_context)(nvidia::Context*, unsigned, int device) = nullptr;
    int (*destroy_context)(nvidia::Context) = nullptr;
    bool bind() {
        return library.bind("cuStreamBeginCapture_v2", begin).ok() && library.bind("cuStreamEndCapture", end).ok() && library.bind("cuGraphInstantiateWithFlags", instantiate).ok() &&
               library.bind("cuGraphLaunch", launch).ok() && library.bind("cuGraphExecDestroy", destroy_exec).ok() && library.bind("cuGraphDestroy", destroy).ok() &&
               library.bind("cuCtxCreate_v2", create_context).ok() && library.bind("cuCtxDestroy_v2", destroy_context).ok();
    }
};

}  // namespace tilewright::test
