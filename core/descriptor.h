// A file descriptor that closes itself.
#pragma once
#include <unistd.h>

#include <utility>

namespace tilewright {

class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
    Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        other.close();
        return *this;
    }
    ~Descriptor() { close(); }
    int get() const { return descriptor_; }  // -1: none

private:
    void close() {
        if (descriptor_ >= 0) ::close(descriptor_);
        descriptor_ = -1;
    }
    int descriptor_ = -1;
};

}  // namespace tilewright
