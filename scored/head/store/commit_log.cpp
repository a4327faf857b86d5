#include "scored/head/store/commit_log.hpp"

#include "base/os/log.hpp"

#include <chrono>
#include <utility>

namespace score::head {
namespace {

constexpr auto kRetryAfter = std::chrono::seconds(1);

}  // namespace

CommitLog::CommitLog(asio::io_context& io, Store store)
    : io_(io), store_(std::move(store)), thread_([this] { run(); }) {}

CommitLog::~CommitLog() {
  stop();
}

void CommitLog::Batch::append(Change change, Callback answer) {
  changes.push_back(std::move(change));
  answers.push_back(std::move(answer));
}

void CommitLog::add(Change change, Callback done) {
  ++pending_;
  {
    const std::lock_guard lock(mutex_);
    queue_.append(std::move(change), std::move(done));
  }
  wake_.notify_one();
}

void CommitLog::after(Callback done) {
  add(Barrier(), std::move(done));
}

void CommitLog::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::uint64_t CommitLog::commits() const {
  const std::lock_guard lock(mutex_);
  return commits_;
}

void CommitLog::run() {
  Batch batch;
  while (wait_for_work(batch)) commit(batch);
  if (!batch.empty()) log_error("lose state changes", kv("count", batch.changes.size()));
}

bool CommitLog::wait_for_work(Batch& batch) {
  std::unique_lock lock(mutex_);
  if (batch.empty()) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  } else {  // the disk did not take it
    wake_.wait_for(lock, kRetryAfter, [this] { return stopping_; });
    if (stopping_) return false;
  }
  Batch fresh = std::exchange(queue_, {});
  for (std::size_t i = 0; i < fresh.changes.size(); ++i) {
    batch.append(std::move(fresh.changes[i]), std::move(fresh.answers[i]));
  }
  return !batch.empty();
}

void CommitLog::commit(Batch& batch) {
  const Status stored = store_.apply(batch.changes);
  if (stored) {
    {
      const std::lock_guard lock(mutex_);
      ++commits_;
    }
    answer(std::exchange(batch, {}).answers, {});
    return;
  }
  log_error("cannot store; refusing submissions, trying the rest again", kv("err", stored.error()));
  std::vector<Callback> refused;
  Batch again;
  for (std::size_t i = 0; i < batch.changes.size(); ++i) {
    if (std::holds_alternative<AddJob>(batch.changes[i])) {
      refused.push_back(std::move(batch.answers[i]));
    } else {
      again.append(std::move(batch.changes[i]), std::move(batch.answers[i]));
    }
  }
  batch = std::move(again);
  answer(std::move(refused), stored);
}

void CommitLog::answer(std::vector<Callback> answers, const Status& status) {
  asio::post(io_, [this, answers = std::move(answers), status] {
    pending_ -= answers.size();
    for (const Callback& done : answers) {
      if (done) done(status);
    }
  });
}

}  // namespace score::head
