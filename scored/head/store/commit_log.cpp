// The frames of a failed commit may be complete in the write-ahead log. The next start would find
// them, and requests that were refused would take effect. So a small change is written until a
// commit succeeds, which overwrites these frames (docs/adr/0071).
#include "scored/head/store/commit_log.hpp"

#include "base/os/log.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace score::head {
namespace {

constexpr auto kRetryAfter = std::chrono::seconds(1);

}  // namespace

CommitLog::CommitLog(asio::io_context& io, Store store)
    : io_(io), store_(std::move(store)), has_log_(store_.has_log()), thread_([this] { run(); }) {}

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

void CommitLog::confirm(std::vector<Change> changes, Confirmed done) {
  if (changes.empty() && !has_log_) return done(LogReceipt());
  if (changes.empty()) changes.emplace_back(Barrier());
  ask(std::move(changes), [done = std::move(done)](const Status& stored) {
    stored ? done(LogReceipt()) : done(stored.error());
  });
}

void CommitLog::add(Change change, Callback done) {
  std::vector<Change> changes;
  changes.push_back(std::move(change));
  enqueue(std::move(changes), {std::move(done), false});
}

// All changes become part of one transaction, because the queue is taken as a whole.
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
  while (wait_for_work(batch)) {
    make_copy();
    if (!batch.empty()) commit(batch);
  }
  if (!batch.empty()) log_error("Dropped state changes", kv("count", batch.changes.size()));
}

bool CommitLog::wait_for_work(Batch& batch) {
  std::unique_lock lock(mutex_);
  if (batch.empty()) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty() || copy_; });
  } else {  // the last commit failed
    wake_.wait_for(lock, kRetryAfter, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return false;
  }
  Batch fresh = std::exchange(queue_, {});
  for (std::size_t i = 0; i < fresh.changes.size(); ++i) {
    batch.append(std::move(fresh.changes[i]), std::move(fresh.waiting[i]));
  }
  return !batch.empty() || copy_;
}

void CommitLog::copy(std::string path, std::function<void(const Result<std::uint64_t>&)> done) {
  {
    const std::lock_guard lock(mutex_);
    copy_ = Copy{std::move(path), std::move(done)};
  }
  wake_.notify_one();
}

void CommitLog::make_copy() {
  std::optional<Copy> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted = std::exchange(copy_, std::nullopt);
  }
  if (!wanted) return;
  Result<std::uint64_t> result = store_.log_sequence();
  if (auto copied = store_.copy_to(wanted->path); !copied) result = copied.error();
  asio::post(io_, [done = std::move(wanted->done), result] { done(result); });
}

// Holds the replies in the order of the commits, which is the order of the posts to the loop.
void CommitLog::hold(std::vector<Waiting> waiting) {
  if (!has_log_) return answer(std::move(waiting), {});
  asio::post(io_, [this, sequence = store_.log_sequence(), changes = store_.take_changes(),
                   waiting = std::move(waiting)]() mutable {
    held_.push_back({sequence, std::move(waiting)});
    if (on_committed_) on_committed_(sequence, std::move(changes));
    release(released_);
  });
}

void CommitLog::release(std::uint64_t sequence) {
  released_ = std::max(released_, sequence);
  while (!held_.empty() && held_.front().sequence <= released_) {
    const std::vector<Waiting> waiting = std::move(held_.front().waiting);
    held_.pop_front();
    pending_ -= waiting.size();
    for (const Waiting& one : waiting) {
      if (one.answer) one.answer({});
    }
  }
}

void CommitLog::commit(Batch& batch) {
  const Status stored = store_.apply(batch.changes);
  if (stored) {
    {
      const std::lock_guard lock(mutex_);
      ++commits_;
    }
    hold(std::exchange(batch, {}).waiting);
    return;
  }
  if (failures_.allow(monotonic_now())) {
    log_error("Cannot store; refusing requests and retrying to store events",
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
