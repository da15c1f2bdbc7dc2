// Errors as values: a code for programs and a sentence for people. No exception crosses the public API.
#pragma once
#include <optional>
#include <string>
#include <utility>

namespace tilewright {

enum class StatusCode {
    ok,
    invalid_argument,  // the caller's input; the message names the value and the limit
    not_found,
    unsupported,  // legal, but this build, architecture or kernel cannot do it
    unavailable,  // a device, driver, compiler or file that is absent or busy
    io,           // a file or database could not be read or written
    compile,      // a kernel did not compile
    runtime,      // a launch or a driver call failed
    timeout,
    internal,  // a bug in Tilewright
};

const char* name(StatusCode code);

// A value type, safe to copy between threads.
class [[nodiscard]] Status {
public:
    Status() = default;
    Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
    bool ok() const { return code_ == StatusCode::ok; }
    StatusCode code() const { return code_; }
    const std::string& message() const { return message_; }

private:
    StatusCode code_ = StatusCode::ok;
    std::string message_;
};

inline Status invalid_argument(std::string message) { return {StatusCode::invalid_argument, std::move(message)}; }

// A T, or the Status that says why there is none. Dereferencing an error is a bug.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::move(value)) {}
    Result(Status status) : status_(std::move(status)) {}
    bool ok() const { return value_.has_value(); }
    const Status& status() const { return status_; }
    T& operator*() & { return *value_; }
    const T& operator*() const& { return *value_; }
    T&& operator*() && { return *std::move(value_); }
    T* operator->() { return &*value_; }
    const T* operator->() const { return &*value_; }

private:
    std::optional<T> value_;
    Status status_;
};

}  // namespace tilewright

// Returns from the enclosing function if `expression` (a Status) is an error.
#define TILEWRIGHT_RETURN_IF_ERROR(expression)                                          \
    do {                                                                                \
        if (::tilewright::Status status_ = (expression); !status_.ok()) return status_; \
    } while (0)
// Declares `declaration` from a Result, or returns its Status.
#define TILEWRIGHT_ASSIGN_OR_RETURN(declaration, expression) TILEWRIGHT_ASSIGN_IMPL_(TILEWRIGHT_JOIN_(result_, __LINE__), declaration, expression)
#define TILEWRIGHT_ASSIGN_IMPL_(result, declaration, expression) \
    auto result = (expression);                                  \
    if (!result.ok()) return result.status();                    \
    declaration = *std::move(result)
#define TILEWRIGHT_JOIN_(a, b) TILEWRIGHT_JOIN2_(a, b)
#define TILEWRIGHT_JOIN2_(a, b) a##b
