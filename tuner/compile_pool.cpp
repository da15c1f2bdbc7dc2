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

int64_t CompilePool::submit(WorkerRequest request) {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back({++last_ticket_, std::move(request)});
    changed_.notify_all();
    return last_ticket_;
}

WorkerReply CompilePool::wait(int64_t ticket) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_.contains(ticket); });
    WorkerReply reply = std::move(done_.at(ticket));
    done_.erase(ticket);
    return reply;
}

void CompilePool::forget(int64_t ticket) {
    const std::scoped_lock lock(mutex_);
    if (std::erase_if(jobs_, [&](const Job& job) { return job.ticket == ticket; }) == 0 && done_.erase(ticket) == 0) forgotten_.insert(ticket);
}

CompilePool::Quiet::Quiet(CompilePool& pool) : pool_(pool) {
    std::unique_lock lock(pool_.mutex_);
    ++pool_.quiet_;
    pool_.changed_.wait(lock, [this] { return pool_.compiling_ == 0; });
}

CompilePool::Quiet::~Quiet() {
    const std::scoped_lock lock(pool_.mutex_);
    --pool_.quiet_;
    pool_.changed_.notify_all();
}

void CompilePool::work(int number, const std::stop_token& stop) {
    std::unique_ptr<WorkerProcess> worker;  // started by this thread: it ends with it
    while (true) {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return !jobs_.empty() && quiet_ == 0; })) return;
        if (stop.stop_requested()) return;
        const Job job = std::move(jobs_.front());
        jobs_.pop_front();
        ++compiling_;
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
        --compiling_;
        if (forgotten_.erase(job.ticket) == 0) done_[job.ticket] = std::move(reply);
        changed_.notify_all();
    }
}

}  // namespace tilewright
