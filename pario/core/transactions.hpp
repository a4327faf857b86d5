// Implements the transactions of one server, with optimistic concurrency control and two-phase
// commit. This class is pure: events and the time in, actions out. ADR 0093 gives the reasons;
// docs/reference/pario.md has the protocol.
//
// A client reads and writes in its own memory. To commit, it stages its reads (with their stamps)
// and its writes at every server, and asks each to prepare. A server agrees if none of the data was
// changed since or is locked by a different transaction, and then locks it until the outcome is
// known. The coordinator, one of these servers, prepares first and decides. At the moment when all
// have agreed, all data that was read is unchanged and all of it is locked: the transactions are
// ordered by these moments.
//
// Plain changes, which clients make without a transaction, are part of the same order. One that is
// in progress conflicts with reads and prepares, and one of locked bytes waits until they are
// unlocked.
//
// With replicas the follower's object replays the records of the leader, and continues from there
// when it leads. A server in doubt asks the coordinator. A coordinator that does not know a
// transaction, or has not decided, answers "aborted" and will never commit it: it is the first to
// be prepared, and a client that stages again gets a different part. For this reason a client that
// dies holds locks for kDoubtMs.
#pragma once

#include "pario/core/transaction_log.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace score::pario {

inline constexpr std::int64_t kDoubtMs = 3'000;     // time in Prepared until the outcome is
                                                    // requested
inline constexpr std::int64_t kAskAgainMs = 1'000;  // time until it is requested again
inline constexpr std::int64_t kStagedMs = 20'000;   // time until staged data is dropped
inline constexpr std::int64_t kKeepMs = 60'000;     // for outcomes, because a client may repeat its
                                                    // request
// For this time after a transaction reads a file, changes of the file are tracked, and it is not
// written directly.
inline constexpr std::int64_t kWatchMs = 600'000;
inline constexpr std::int64_t kNoLeaseMs = 10'000;
inline constexpr std::size_t kMaxStaged = std::size_t{256} << 20;  // bytes of all transactions

enum class Outcome : std::uint8_t { Aborted = 0, Committed = 1, Undecided = 2 };

class Transactions {
 public:
  struct Action {
    enum class Kind {
      Append,  // append `record` to the log
      Apply,   // write the data of `id` to the files, then call applied()
      Reply,   // reply with `error` and `outcome` to the request `token`
      Ask,     // ask `server` for the outcome of `id`
      Push,    // send "committed" for `id` to `server`
    };

    Kind kind = Kind::Append;
    TransactionId id = 0;
    std::string record{};
    bool after_sync = false;  // all earlier records must be on the disk first
    std::uint64_t token = 0;
    int error = 0;
    Outcome outcome = Outcome::Aborted;
    std::uint16_t server = 0;
  };

  // Stamps of different lives of a server differ in `life`.
  Transactions(std::uint16_t server, std::uint32_t life)
      : server_(server), life_(std::uint64_t{life} << 32) {}

  // --- Before the first event: replay the log, record by record, then call recovered(). ---
  // Replays one record. `boot` identifies the current boot of the system. A record may be repeated
  // together with all that follow it.
  void replay(LogRecord record, std::uint64_t boot);
  // Creates actions for committed transactions that are not in the files, in the order of commits.
  void recovered(std::int64_t now_ms);
  // Replaces tick() before recovered().
  void tick_replayed(std::int64_t now_ms);

  // --- Requests. Those without a token are answered by the return value, an errno value. ---
  struct Stage {
    TransactionId id = 0;
    std::uint32_t sequence = 0;  // of the message; a repeated one is ignored
    std::vector<ReadAccess> reads;
    std::vector<WriteAccess> writes;
  };

  int stage(Stage stage, std::int64_t now_ms);

  struct Prepare {
    TransactionId id = 0;
    std::uint32_t stages = 0;  // number of messages that were staged
    std::uint16_t coordinator = 0;
    bool is_stable = false;
    std::vector<std::uint16_t> servers;  // if there is only one, it commits at once
    std::uint64_t token = 0;
  };

  // Replies with EAGAIN if there is a conflict, or not all messages were staged; the client aborts
  // and tries again.
  void prepare(const Prepare& prepare, std::int64_t now_ms);
  // Replies with ECANCELED if the transaction was aborted, or this server is not the coordinator.
  void decide(TransactionId id, std::uint64_t token, std::int64_t now_ms);
  void finish(TransactionId id, bool commits, std::uint64_t token, std::int64_t now_ms);
  // Answers a request of another server.
  void report_outcome(TransactionId id, std::uint64_t token, std::int64_t now_ms);
  // Call this when all servers have committed.
  void end(TransactionId id);

  // --- Plain changes. ---
  // Begins a change of these bytes; end_plain() ends it. Returns 0 if some of them are locked; the
  // change must then wait until take_unlocked().
  std::uint64_t begin_plain(FileId file, const std::vector<Extent>& extents);
  void end_plain(FileId file, std::uint64_t number);
  // Any byte of the file may have changed, or will soon change without notice.
  void file_changed(FileId file);
  // Returns true if transactions use the file.
  bool is_in_use(FileId file, std::int64_t now_ms) const;

  bool take_unlocked() { return std::exchange(has_unlocked_, false); }

  // --- Results of actions. ---
  void applied(TransactionId id, std::uint64_t boot);
  void learn(TransactionId id, Outcome outcome);
  void pushed(TransactionId id, std::uint16_t server);
  void tick(std::int64_t now_ms);

  std::vector<Action> take_actions() { return std::exchange(actions_, {}); }

  // --- Queries. ---
  // Returns the stamp of a read that starts now. EAGAIN: some of the data is about to change.
  int stamp(FileId file, const std::vector<Extent>& extents, std::int64_t now_ms,
            std::uint64_t& stamp);
  // Returns null if the transaction is not known.
  const TransactionPart* part(TransactionId id) const;

  // Returns true if the transaction is committed, but not in the files yet.
  bool must_apply(TransactionId id) const;

  // These return a log that leads to the same state, without finished transactions. All applied
  // changes must be on the disk.
  std::vector<std::string> records() const;
  std::string compacted() const;

 private:
  enum class State {
    Staging,     // the client sends its parts
    Prepared,    // has agreed; locked
    Committing,  // decided; not in the files yet; locked
    Committed,   // kept for queries
  };

  struct Known {
    State state = State::Staging;
    TransactionPart part;
    std::map<std::uint32_t, Stage> stages;
    std::size_t staged_bytes = 0;
    std::int64_t since_ms = 0;
    std::int64_t next_try_ms = 0;
    std::vector<std::uint16_t> waiting;  // at the coordinator: servers that have not committed
    std::vector<std::uint64_t> tokens;   // requests to be answered when it is committed
    std::uint64_t order = 0;             // of commits
  };

  struct Held {
    TransactionId id = 0;
    Extent extent;
    bool is_write = false;
  };

  struct Plain {
    std::uint64_t number = 0;
    std::vector<Extent> extents;
  };

  // Stores the time of the last change of each range of a file that transactions read, by clock_.
  struct Watched {
    std::uint64_t since = 0;  // earlier changes are not known
    std::uint64_t whole = 0;  // last change of the whole file
    std::unordered_map<std::uint64_t, std::uint64_t> granules;
    std::int64_t read_ms = 0;
  };

  using Place = std::map<TransactionId, Known>::iterator;

  int check(const TransactionPart& part) const;
  bool is_changed(const ReadAccess& read) const;
  bool is_held(FileId file, const Extent& extent, bool for_write, TransactionId by) const;
  bool is_being_changed(FileId file, const Extent& extent) const;
  void lock(const TransactionPart& part);
  void unlock(const TransactionPart& part);
  void set_stamps(FileId file, const Extent& extent);
  std::vector<const Known*> committing() const;
  void commit(Known& known, std::int64_t now_ms);
  void abort(Place place);
  void forget(Place place);
  bool merge(Known& known);
  void append(LogRecord::Kind kind, const TransactionPart& part, std::uint64_t boot = 0);
  void reply(std::uint64_t token, int error, bool after_sync, Outcome outcome = Outcome::Aborted);
  void tick_prepared(Place place, std::int64_t now_ms);
  void tick_committed(Place place, std::int64_t now_ms);

  std::uint16_t server_;
  std::uint64_t life_;
  std::uint64_t clock_ = 1;
  std::map<TransactionId, Known> known_;
  std::unordered_map<FileId, std::vector<Held>> held_;
  std::unordered_map<FileId, std::vector<Plain>> plain_;  // in progress
  std::uint64_t last_plain_ = 0;
  std::unordered_map<FileId, Watched> watched_;
  std::size_t granule_count_ = 0;
  bool has_unlocked_ = false;
  std::size_t staged_bytes_ = 0;
  std::uint64_t commits_ = 0;
  std::vector<Action> actions_;
};

}  // namespace score::pario
