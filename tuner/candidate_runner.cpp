// One device worker, replaced when a candidate takes it down.
#include "tuner/candidate_runner.h"

namespace tilewright {

Status CandidateRunner::ensure_worker() {
    std::string reason;
    for (int attempt = 0; attempt < 3 && !worker_; ++attempt) {
        TILEWRIGHT_ASSIGN_OR_RETURN(worker_, WorkerProcess::start(options_.command, options_.log));
        const WorkerProcess::Exchange exchange = worker_->ask(prepare_, options_.prepare_timeout_seconds);
        if (exchange.end == WorkerProcess::End::replied && exchange.reply.outcome == Outcome::correct) break;
        worker_.reset();
        reason = exchange.reply.message;
    }
    if (!worker_) return {StatusCode::unavailable, "device " + prepare_.device + " does not answer: " + reason};
    return {};
}

Result<WorkerReply> CandidateRunner::evaluate(const WorkerRequest& request) {
    std::string first_reason;
    for (int attempt = 0;; ++attempt) {
        TILEWRIGHT_RETURN_IF_ERROR(ensure_worker());
        WorkerProcess::Exchange exchange = worker_->ask(request, options_.run_timeout_seconds);
        if (exchange.end == WorkerProcess::End::replied) {
            if (exchange.reply.outcome == Outcome::runtime && options_.restart_after_failure) worker_.reset();
            return std::move(exchange.reply);
        }
        worker_.reset();
        ++lost_;
        if (attempt == 1) {
            if (exchange.reason != first_reason) exchange.reply.message += "; before that, " + first_reason;
            exchange.reply.message += "; twice, so it is not tried again";
            return std::move(exchange.reply);
        }
        first_reason = exchange.reason;
    }
}

Result<WorkerReply> CandidateRunner::race(const WorkerRequest& request) {
    TILEWRIGHT_RETURN_IF_ERROR(ensure_worker());
    WorkerProcess::Exchange exchange = worker_->ask(request, request.seconds + 2 * options_.run_timeout_seconds);
    if (exchange.end != WorkerProcess::End::replied) {
        worker_.reset();
        ++lost_;
    }
    return std::move(exchange.reply);
}

}  // namespace tilewright
