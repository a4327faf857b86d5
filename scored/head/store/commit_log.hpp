#pragma once
// Group commit: changes are collected while the disk is busy with those before them, and all that
// came meanwhile is the next transaction. So 16 clients that each wait for their answer share one
// fsync, no client waits for a timer, and the loop never waits for the disk.
//
// One thread of its own owns the Store; it takes plain values and gives answers back by posting to
// the loop. Every function here is called on the loop's thread, every callback runs there.

#include "base/async/asio.hpp"
#include "base/result.hpp"
#include "scored/head/store/store.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace score::head {

class CommitLog {
 public:
  using Callback = std::function<void(const Status&)>;

  // io must outlive it.
  CommitLog(asio::io_context& io, Store store);
  CommitLog(const CommitLog&) = delete;
  CommitLog& operator=(const CommitLog&) = delete;
  ~CommitLog();  // stop()

  // The callback comes after the commit, in the order of the calls. Only AddJob can fail (disk full
  // ...): nothing of it is stored then. Other changes are tried again until they are stored; what
  // waits for them waits.
  void add(Change change, Callback done = {});
  // The callback comes when everything added before is durable.
  void after(Callback done);

  // Added and not yet answered.
  [[nodiscard]] std::size_t pending() const { return pending_; }

  // Commits what is left (one try), ends the thread. Idempotent. Callbacks may still come.
  void stop();

  // Transactions so far: pending() apart, submissions / commits is the gain of grouping.
  [[nodiscard]] std::uint64_t commits() const;

 private:
  // Side by side: changes[i] is answered through answers[i].
  struct Batch {
    std::vector<Change> changes;
    std::vector<Callback> answers;

    [[nodiscard]] bool empty() const { return changes.empty(); }

    void append(Change change, Callback answer);
  };

  void run();
  // Adds the changes that were queued meanwhile. False: stop, there is nothing more to do.
  bool wait_for_work(Batch& batch);
  // What could not be stored and must be tried again stays in the batch.
  void commit(Batch& batch);
  void answer(std::vector<Callback> answers, const Status& status);

  asio::io_context& io_;
  Store store_;
  std::size_t pending_ = 0;  // loop's thread only

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  Batch queue_;
  bool stopping_ = false;
  std::uint64_t commits_ = 0;
  std::thread thread_;
};

}  // namespace score::head
