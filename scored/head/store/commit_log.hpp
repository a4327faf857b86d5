#pragma once
// CommitLog does group commit. Changes are collected while the disk is busy with earlier ones, and
// then become the next transaction together. So 16 clients that each wait for their reply share one
// fsync, no client waits for a timer, and the loop never waits for the disk.
//
// In a store with a log (docs/adr/0089), stored changes are acknowledged only when they are
// released, so that the other head can store them first.
//
// A separate thread owns the Store; it takes plain values and posts replies to the loop. Every
// function here must be called on the loop's thread, and every callback runs there.

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

// A LogReceipt proves that the changes of a command are durable and, with two heads, in the log
// that the other head follows or is known to lack. Only CommitLog makes one, and every confirmation
// needs one (docs/adr/0112).
class LogReceipt {
  friend class CommitLog;
  LogReceipt() = default;
};

// Logged is what a command is answered, with the receipt of its change.
template <typename T>
struct Logged {
  T value;
  LogReceipt receipt;
};

class CommitLog {
 public:
  using Callback = std::function<void(const Status&)>;
  using Confirmed = std::function<void(const Result<LogReceipt>&)>;

  // `io` must outlive this object.
  CommitLog(asio::io_context& io, Store store);
  CommitLog(const CommitLog&) = delete;
  CommitLog& operator=(const CommitLog&) = delete;
  ~CommitLog();  // calls stop()

  // Callbacks come after the commit, in the order of the calls.
  // Stores the changes of a request, which takes effect only when it is on disk. Either all of it
  // is stored, or nothing is (disk full, I/O error ...) and the callback has the error.
  void ask(std::vector<Change> changes, Callback done);
  // Does what ask() does for a command, which is answered with the receipt. With two heads a
  // command without changes passes through the log, too, because a head that was replaced must not
  // confirm it. In a store without a log its callback comes at once.
  void confirm(std::vector<Change> changes, Confirmed done);
  // Stores an event that has happened. Storing it is retried until it succeeds; its callback waits
  // for that.
  void add(Change change, Callback done = {});
  // Calls `done` when everything added before is durable.
  void after(Callback done);

  // ---- for a store with a log
  // The handler is called for each transaction that is on disk, in order.
  void on_committed(std::function<void(std::uint64_t sequence, std::string changes)> then) {
    on_committed_ = std::move(then);
  }

  // Releases the replies of all transactions up to this one.
  void release(std::uint64_t sequence);
  // Writes a copy of the database between two transactions; the callback has the sequence of the
  // last transaction in the copy.
  void copy(std::string path, std::function<void(const Result<std::uint64_t>&)> done);

  // Returns the number of changes that were added and not yet acknowledged.
  [[nodiscard]] std::size_t pending() const { return pending_; }

  // Tries once to commit what is left, then ends the thread. May be called twice. Callbacks may
  // still come afterwards.
  void stop();

  // Returns the number of transactions so far; submissions per commit is the gain of grouping.
  [[nodiscard]] std::uint64_t commits() const;

 private:
  struct Waiting {
    Callback answer;
    bool is_request = false;  // false: an event that has happened
  };

  // The vectors are parallel: waiting[i] has the callback of changes[i].
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
  // Adds the changes that were queued in the meantime. Returns false when the thread must stop.
  bool wait_for_work(Batch& batch);
  // Stores the batch in one transaction; events that could not be stored stay in the batch.
  void commit(Batch& batch);
  void enqueue(std::vector<Change> changes, Waiting last);
  void answer(std::vector<Waiting> waiting, const Status& status);

  asio::io_context& io_;
  Store store_;
  LogLimiter failures_;      // used by the commit thread
  std::size_t pending_ = 0;  // loop's thread only
  const bool has_log_;
  std::function<void(std::uint64_t, std::string)> on_committed_;  // loop's thread only
  std::deque<Held> held_;                                         // loop's thread only
  std::uint64_t released_ = 0;                                    // loop's thread only

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  Batch queue_;
  std::optional<Copy> copy_;
  bool stopping_ = false;
  std::uint64_t commits_ = 0;
  std::thread thread_;
};

}  // namespace score::head
