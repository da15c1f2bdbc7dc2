// A queue of compilations and the threads that each drive one worker.
#include "tuner/compile_pool.h"

#include "tuner/worker.h"

namespace tilewright {

CompilePool::CompilePool(std::vector<std::string> command, std::string log_prefix, int workers, double timeout_seconds)
    : command_(std::move(command)), log_prefix_(std::move(log_prefix)), timeout_seconds_(timeout_seconds) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this, i](const std::stop_token& stop) { work(i, stop); });
}

CompilePool::~CompilePool() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
}

void CompilePool::submit(int64_t ticket, WorkerRequest request) {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back({ticket, std::move(request)});
    changed_.notify_all();
}

WorkerReply CompilePool::wait(int64_t ticket) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_.contains(ticket); });
    WorkerReply reply = std::move(done_.at(ticket));
    done_.erase(ticket);
    return reply;
}

void CompilePool::work(int number, const std::stop_token& stop) {
    std::unique_ptr<WorkerProcess> worker;  // started by this thread: it ends with it
    while (true) {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return !jobs_.empty(); })) return;
        if (stop.stop_requested()) return;
        const Job job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();

        WorkerReply reply;
        if (!worker) {
            auto started = WorkerProcess::start(command_, log_prefix_ + std::to_string(number));
            if (started.ok())
                worker = *std::move(started);
            else
                reply.message = started.status().message();
        }
        if (worker) {
            WorkerProcess::Exchange exchange = worker->ask(job.request, timeout_seconds_);
            if (exchange.end != WorkerProcess::End::replied) worker.reset();
            if (exchange.end == WorkerProcess::End::died) exchange.reply.outcome = Outcome::compile;
            reply = std::move(exchange.reply);
        } else {
            reply.outcome = Outcome::compile;
        }
        lock.lock();
        done_[job.ticket] = std::move(reply);
        changed_.notify_all();
    }
}

}  // namespace tilewright
