// The hot path: answers that were given before, found by any number of threads without a lock.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "db/lookup/index.h"

namespace tilewright::lookup {

// Given answers by question. find() may run at any time beside one add(); adds are serialised by the caller.
class Memo {
public:
    explicit Memo(size_t capacity) : capacity_(capacity), slots_(4 * capacity) {}  // a power of two

    const LookupResult* find(uint64_t hash, const Problem& problem, int device, const LookupLimits& limits) const {
        const size_t mask = slots_.size() - 1;
        for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
            const Given* const given = slots_[slot].load(std::memory_order_acquire);
            if (!given) return nullptr;
            if (given->hash == hash && given->device == device && given->problem == problem && given->limits == limits) return &given->result;
        }
    }

    // False if it is full.
    bool add(uint64_t hash, const Problem& problem, int device, const LookupLimits& limits, const LookupResult& result) {
        if (given_.size() == capacity_) return false;
        given_.push_back({hash, device, problem, limits, result});
        publish(&given_.back());
        return true;
    }

    size_t capacity() const { return capacity_; }
    // All answers of `other`, which must fit.
    void take_all(const Memo& other) {
        for (const Given& given : other.given_) {
            given_.push_back(given);
            publish(&given_.back());
        }
    }

private:
    struct Given {
        uint64_t hash;
        int device;
        Problem problem;
        LookupLimits limits;
        LookupResult result;
    };

    // Answers are complete before their slot points to them, and never change afterwards.
    void publish(const Given* given) {
        const size_t mask = slots_.size() - 1;
        size_t slot = given->hash & mask;
        while (slots_[slot].load(std::memory_order_relaxed)) slot = (slot + 1) & mask;
        slots_[slot].store(given, std::memory_order_release);
    }

    size_t capacity_;
    std::deque<Given> given_;  // addresses stay
    std::vector<std::atomic<const Given*>> slots_;
};

// Tells when no reader can still hold what was taken out of their sight. Readers only touch a counter of their own.
class Readers {
public:
    class Guard {
    public:
        explicit Guard(std::atomic<uint32_t>& count) : count_(count) { count_.fetch_add(1, std::memory_order_seq_cst); }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;
        ~Guard() { count_.fetch_sub(1, std::memory_order_release); }

    private:
        std::atomic<uint32_t>& count_;
    };

    // While it lives, what the reader loads after it stays.
    Guard enter() { return Guard(counters_[slot()].count); }

    // After a pointer was replaced (sequentially consistent): true once every reader that may have loaded the old one has
    // left; false if one stays longer than a moment, then ask again later.
    bool have_left() const {
        for (const Counter& counter : counters_) {
            int tries = 1000;
            while (counter.count.load(std::memory_order_seq_cst) != 0) {
                if (--tries == 0) return false;
                std::this_thread::yield();
            }
        }
        return true;
    }

private:
    static constexpr size_t slots = 64;
    struct alignas(64) Counter {
        std::atomic<uint32_t> count{0};
    };

    static size_t slot() {
        static std::atomic<size_t> next{0};
        thread_local const size_t mine = next.fetch_add(1, std::memory_order_relaxed) % slots;
        return mine;
    }

    Counter counters_[slots];
};

}  // namespace tilewright::lookup
