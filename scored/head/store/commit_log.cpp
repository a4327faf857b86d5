// After a failed commit its frames may lie whole in the write-ahead log, where the next start would
// find them: the requests in it were refused, but would come back. So a small change is written
// until a commit succeeds, which overwrites them (docs/adr/0071).
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

void CommitLog::Batch::append(Change change, Waiting waits) {
  changes.push_back(std::move(change));
  waiting.push_back(std::move(waits));
}

void CommitLog::ask(std::vector<Change> changes, Callback done) {
  enqueue(std::move(changes), {std::move(done), true});
}

void CommitLog::add(Change change, Callback done) {
  std::vector<Change> changes;
  changes.push_back(std::move(change));
  enqueue(std::move(changes), {std::move(done), false});
}

// One transaction: the queue is taken as a whole.
void CommitLog::enqueue(std::vector<Change> changes, Waiting last) {
  pending_ += changes.size();
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const bool is_last = i + 1 == changes.size();
      queue_.append(std::move(changes[i]), {is_last ? last.answer : Callback(), last.is_request});
    }
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
    wake_.wait_for(lock, kRetryAfter, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return false;
  }
  Batch fresh = std::exchange(queue_, {});
  for (std::size_t i = 0; i < fresh.changes.size(); ++i) {
    batch.append(std::move(fresh.changes[i]), std::move(fresh.waiting[i]));
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
    answer(std::exchange(batch, {}).waiting, {});
    return;
  }
  if (failures_.allow(monotonic_now())) {
    log_error("cannot store; refusing changes, trying to store what has happened again",
              kv("err", stored.error()), kv("suppressed", failures_.take_suppressed()));
  }
  std::vector<Waiting> refused;
  Batch again;
  for (std::size_t i = 0; i < batch.changes.size(); ++i) {
    if (batch.waiting[i].is_request) {
      refused.push_back(std::move(batch.waiting[i]));
    } else {
      again.append(std::move(batch.changes[i]), std::move(batch.waiting[i]));
    }
  }
  if (again.empty()) {
    asio::post(io_, [this] { add(SaveSetting{"after_failure", ""}); });
  }
  batch = std::move(again);
  answer(std::move(refused), stored);
}

void CommitLog::answer(std::vector<Waiting> waiting, const Status& status) {
  asio::post(io_, [this, waiting = std::move(waiting), status] {
    pending_ -= waiting.size();
    for (const Waiting& one : waiting) {
      if (one.answer) one.answer(status);
    }
  });
}

}  // namespace score::head
