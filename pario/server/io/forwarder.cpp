#include "pario/server/io/forwarder.hpp"

#include <cerrno>
#include <csignal>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

constexpr int kReconnectSeconds = 2;

}  // namespace

Forwarder::Forwarder(const VolumeDescription& volume, std::uint32_t server, int event)
    : link_(volume, server, Link::Peer{kReconnectSeconds, false}), event_(event) {
  // Signals end the loop, so its thread must receive them.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  sender_ = std::thread([this] { run_sender(); });
  finisher_ = std::thread([this] { run_finisher(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Forwarder::~Forwarder() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
    is_broken_ = true;
  }
  changed_.notify_all();
  sender_.join();
  finisher_.join();
}

void Forwarder::send(Request request, const char* data, std::shared_ptr<void> keeps, Done done) {
  auto job = std::make_unique<Job>();
  job->call.request = std::move(request);
  if (job->call.request.data_bytes > 0) {
    job->call.memory = {{const_cast<char*>(data), job->call.request.data_bytes}};
  }
  job->keeps = std::move(keeps);
  job->done = std::move(done);
  const std::scoped_lock lock(mutex_);
  waiting_.push_back(std::move(job));
  changed_.notify_all();
}

void Forwarder::reset() {
  const std::scoped_lock lock(mutex_);
  is_broken_ = false;
}

// The caller holds the lock.
void Forwarder::end(JobPtr job) {
  if (job->call.error != 0) is_broken_ = true;
  results_.push_back(std::move(job));
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_, &one, sizeof one);
}

void Forwarder::run_sender() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_stopped_ || !waiting_.empty(); });
    if (is_stopped_) return;
    JobPtr job = std::move(waiting_.front());
    waiting_.pop_front();
    if (is_broken_) {
      job->call.error = EIO;
      end(std::move(job));
      continue;
    }
    Call& call = job->call;
    sent_.push_back(std::move(job));
    is_sending_ = true;
    lock.unlock();
    link_.start(call);
    lock.lock();
    is_sending_ = false;
    changed_.notify_all();
  }
}

void Forwarder::run_finisher() {
  std::unique_lock lock(mutex_);
  for (;;) {
    // The last one may not have been sent yet.
    changed_.wait(lock, [this] {
      return sent_.size() > (is_sending_ ? 1U : 0U) || (is_stopped_ && !is_sending_);
    });
    if (sent_.empty()) return;
    JobPtr job = std::move(sent_.front());
    sent_.pop_front();
    lock.unlock();
    link_.finish(job->call);
    lock.lock();
    end(std::move(job));
  }
}

void Forwarder::run_results() {
  std::vector<JobPtr> results;
  {
    const std::scoped_lock lock(mutex_);
    results.swap(results_);
  }
  for (const JobPtr& job : results) job->done(job->call.error);
}

}  // namespace score::pario
