// Devices that the tests of calls share, each opened once, without the databases of the machine.
#pragma once
#include "tilewright/attention.h"

namespace tilewright {

inline AttentionOptions options_on(const char* device) {
    AttentionOptions options;
    options.device = device;
    options.database.use_user = options.database.use_system = false;
    return options;
}

// The CPU, with two threads.
inline Attention& cpu() {
    static Attention opened = [] {
        AttentionOptions options = options_on("cpu:0");
        options.threads = 2;
        return *Attention::open(options);
    }();
    return opened;
}

// "nvidia:0"; null where there is none.
inline Attention* gpu() {
    static Result<Attention> opened = Attention::open(options_on("nvidia:0"));
    return opened.ok() ? &*opened : nullptr;
}

}  // namespace tilewright
