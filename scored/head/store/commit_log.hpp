#pragma once
// Group commit: changes are collected while the disk is busy with those before them, and all that
// came meanwhile is the next transaction. So 16 clients that each wait for their answer share one
// fsync, no client waits for a timer, and the loop never waits for the disk.
//
// A store with a log (docs/adr/0089): what is stored is answered when it is released, so that the
// other head can store it before.
//
// One thread of its own owns the Store; it takes plain values and gives answers back by posting to
// the loop. Every function here is called on the loop's thread, every callback runs there.

#include "base/async/asio.hpp"
#include "base/os/log.hpp"
#include "base/result.hpp"
#include "scored/head/store/store.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
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

  // Callbacks come after the commit, in the order of the calls.
  // What someone asks for, and does not happen before it is on disk: all of it is stored, or (disk
  // full, I/O error ...) nothing of it is, and the callback has the error.
  void ask(std::vector<Change> changes, Callback done);
  // What has happened: tried again until it is stored; what waits for it waits.
  void add(Change change, Callback done = {});
  // The callback comes when everything added before is durable.
  void after(Callback done);

  // ---- of a store with a log
  // Called for each transaction that is on disk, in order.
  void on_committed(std::function<void(std::uint64_t sequence, std::string changes)> then) {
    on_committed_ = std::move(then);
  }

  // What was stored up to this transaction is answered.
  void release(std::uint64_t sequence);
  // Writes a copy of the database, between two transactions; the callback has the sequence of the
  // last one that is in it.
  void copy(std::string path, std::function<void(const Result<std::uint64_t>&)> done);

  // Added and not yet answered.
  [[nodiscard]] std::size_t pending() const { return pending_; }

  // Commits what is left (one try), ends the thread. Idempotent. Callbacks may still come.
  void stop();

  // Transactions so far: pending() apart, submissions / commits is the gain of grouping.
  [[nodiscard]] std::uint64_t commits() const;

 private:
  struct Waiting {
    Callback answer;
    bool is_request = false;  // else it has happened
  };

  // Side by side: changes[i] is answered through waiting[i].
  struct Batch {
    std::vector<Change> changes;
    std::vector<Waiting> waiting;

    [[nodiscard]] bool empty() const { return changes.empty(); }

    void append(Change change, Waiting waits);
  };

  struct Held {
    std::uint64_t sequence = 0;
    std::vector<Waiting> waiting;
  };

  struct Copy {
    std::string path;
    std::function<void(const Result<std::uint64_t>&)> done;
  };

  void run();
  void make_copy();
  void hold(std::vector<Waiting> waiting);
  // Adds the changes that were queued meanwhile. False: stop, there is nothing more to do.
  bool wait_for_work(Batch& batch);
  // What has happened and could not be stored stays in the batch.
  void commit(Batch& batch);
  void enqueue(std::vector<Change> changes, Waiting last);
  void answer(std::vector<Waiting> waiting, const Status& status);

  asio::io_context& io_;
  Store store_;
  LogLimiter failures_;      // the thread's
  std::size_t pending_ = 0;  // loop's thread only
  const bool has_log_;
  std::function<void(std::uint64_t, std::string)> on_committed_;  // loop's thread only
  std::deque<Held> held_;                                         // loop's thread only
  std::uint64_t released_ = 0;                                    // loop's thread only

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  Batch queue_;
  std::optional<Copy> copy_;
  bool stopping_ = false;
  std::uint64_t commits_ = 0;
  std::thread thread_;
};

}  // namespace score::head
