// A library opened at run time, so that one binary starts with or without a vendor's driver.
#pragma once
#include <string>

#include "tilewright/status.h"

namespace tilewright {

// Movable handle; the library stays open for the handle's life. Thread-safe to read.
class SharedLibrary {
public:
    SharedLibrary() = default;
    // `name` is a path, or a bare name that the loader's search path resolves. unavailable, with the loader's reason.
    static Result<SharedLibrary> open(const std::string& name);

    ~SharedLibrary();
    SharedLibrary(SharedLibrary&& other) noexcept : handle_(other.handle_), path_(std::move(other.path_)) { other.handle_ = nullptr; }
    SharedLibrary& operator=(SharedLibrary&& other) noexcept;
    SharedLibrary(const SharedLibrary&) = delete;
    SharedLibrary& operator=(const SharedLibrary&) = delete;

    // Stores the address of `symbol` in `function` (a pointer to function). unavailable, naming both, if it is not there.
    template <class Function>
    Status bind(const char* symbol, Function*& function) const {
        void* address = find(symbol);
        if (!address) return {StatusCode::unavailable, path_ + " has no " + symbol};
        function = reinterpret_cast<Function*>(address);
        return {};
    }
    void* find(const char* symbol) const;  // null: not there
    const std::string& path() const { return path_; }  // where the loader found it

private:
    SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
    void* handle_ = nullptr;
    std::string path_;
};

}  // namespace tilewright
