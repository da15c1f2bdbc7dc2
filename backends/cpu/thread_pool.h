// A fixed set of threads that run one function together.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tilewright {

class ThreadPool {
public:
    explicit ThreadPool(int threads);  // counting the caller of run(); at least 1
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int threads() const { return static_cast<int>(workers_.size()) + 1; }
    // Calls work(0) .. work(count - 1), each on a thread of its own, work(0) on the caller's; returns when all have returned.
    // count <= threads(). Not thread-safe: one call at a time.
    void run(int count, const std::function<void(int)>& work);

private:
    void serve(int number);

    std::vector<std::thread> workers_;
    std::mutex mutex_;
    std::condition_variable start_, finished_;
    const std::function<void(int)>* work_ = nullptr;
    int count_ = 0, running_ = 0;
    long generation_ = 0;
    bool stop_ = false;
};

}  // namespace tilewright
