// Threads that sleep until there is work.
#include "backends/cpu/thread_pool.h"

namespace tilewright {

ThreadPool::ThreadPool(int threads) {
    for (int number = 1; number < threads; ++number) workers_.emplace_back([this, number] { serve(number); });
}

ThreadPool::~ThreadPool() {
    {
        std::lock_guard lock(mutex_);
        stop_ = true;
    }
    start_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int count, const std::function<void(int)>& work) {
    if (count <= 1) {
        if (count == 1) work(0);
        return;
    }
    {
        std::lock_guard lock(mutex_);
        work_ = &work, count_ = count, running_ = count - 1, ++generation_;
    }
    start_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return running_ == 0; });
}

void ThreadPool::serve(int number) {
    long seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
        start_.wait(lock, [&] { return stop_ || generation_ != seen; });
        if (stop_) return;
        seen = generation_;
        if (number >= count_) continue;
        const std::function<void(int)>* work = work_;
        lock.unlock();
        (*work)(number);
        lock.lock();
        if (--running_ == 0) finished_.notify_one();
    }
}

}  // namespace tilewright
