// The transactions of one server: optimistic concurrency control and two-phase commit. Pure: events
// and the time in, actions out. ADR 0093 argues; docs/reference/pario.md has the protocol.
//
// A client reads and writes into its own memory. To commit, it stages what it has read (with the
// stamps of the reads) and written at every server, and asks each to prepare: a server says yes if
// nothing of it was changed since or is locked by another transaction, and then locks it until the
// outcome is known. The coordinator, one of these servers, prepares first and decides. At the
// moment when all have said yes, all that was read is still so and all of it is locked: the
// transactions have the order of these moments.
//
// Plain changes, of clients without a transaction, are in the same order: one that is under way is
// in conflict with reads and prepares, and one of locked bytes waits until they are unlocked.
//
// With replicas the follower's object replays the records of the leader, and goes on from there
// when it leads. A server in doubt asks the coordinator. One that knows nothing of a transaction,
// or has not decided, says "aborted" and will never commit it: it is the first to be prepared, and
// a client that stages again gets a different part. So a client that dies holds locks for kDoubtMs.
#pragma once

#include "pario/core/transaction_log.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace score::pario {

inline constexpr std::int64_t kDoubtMs = 3'000;     // prepared, until the outcome is asked for
inline constexpr std::int64_t kAskAgainMs = 1'000;  // and again
inline constexpr std::int64_t kStagedMs = 20'000;   // staged, until it is forgotten
inline constexpr std::int64_t kKeepMs = 60'000;     // an outcome: a client may repeat its request
// After a read of a transaction: changes of the file are noted, and it is not written directly.
inline constexpr std::int64_t kWatchMs = 600'000;
inline constexpr std::int64_t kNoLeaseMs = 10'000;
inline constexpr std::size_t kMaxStaged = std::size_t{256} << 20;  // bytes of all transactions

enum class Outcome : std::uint8_t { Aborted = 0, Committed = 1, Undecided = 2 };

class Transactions {
 public:
  struct Action {
    enum class Kind {
      Append,  // `record` to the log
      Apply,   // the writes of `id` to the files, then call applied()
      Reply,   // `error` and `outcome` to the request `token`
      Ask,     // `server` for the outcome of `id`
      Push,    // "committed" for `id` to `server`
    };

    Kind kind = Kind::Append;
    TransactionId id = 0;
    std::string record{};
    bool after_sync = false;  // all that was appended before must be on the disk first
    std::uint64_t token = 0;
    int error = 0;
    Outcome outcome = Outcome::Aborted;
    std::uint16_t server = 0;
  };

  // Stamps of different lives of a server differ in `life`.
  Transactions(std::uint16_t server, std::uint32_t life)
      : server_(server), life_(std::uint64_t{life} << 32) {}

  // --- Before the first event: the log, record by record, then recovered(). ---
  // `boot`: of the system now. A record may come again with all that follow it.
  void replay(LogRecord record, std::uint64_t boot);
  // Makes actions for committed transactions that are not in the files, in the order of commits.
  void recovered(std::int64_t now_ms);
  // Instead of tick() before recovered().
  void tick_replayed(std::int64_t now_ms);

  // --- Requests. Those without a token are answered by their result, an errno value. ---
  struct Stage {
    TransactionId id = 0;
    std::uint32_t sequence = 0;  // of the message; a repeated one is ignored
    std::vector<ReadAccess> reads;
    std::vector<WriteAccess> writes;
  };

  int stage(Stage stage, std::int64_t now_ms);

  struct Prepare {
    TransactionId id = 0;
    std::uint32_t stages = 0;  // messages that were staged
    std::uint16_t coordinator = 0;
    bool is_stable = false;
    std::vector<std::uint16_t> servers;  // only one: commits at once
    std::uint64_t token = 0;
  };

  // EAGAIN: in conflict, or not all was staged; the client aborts and tries again.
  void prepare(const Prepare& prepare, std::int64_t now_ms);
  // ECANCELED: aborted, or this is not the coordinator.
  void decide(TransactionId id, std::uint64_t token, std::int64_t now_ms);
  void finish(TransactionId id, bool commits, std::uint64_t token, std::int64_t now_ms);
  // From another server.
  void tell_outcome(TransactionId id, std::uint64_t token, std::int64_t now_ms);
  // All servers have committed.
  void end(TransactionId id);

  // --- Plain changes. ---
  // A change of these bytes begins; end_plain() ends it. 0: some of them are locked, and it has to
  // wait until take_unlocked().
  std::uint64_t begin_plain(FileId file, const std::vector<Extent>& extents);
  void end_plain(FileId file, std::uint64_t number);
  // Any byte of it may have changed, or will soon without a word.
  void file_changed(FileId file);
  // Transactions use it.
  bool is_in_use(FileId file, std::int64_t now_ms) const;

  bool take_unlocked() { return std::exchange(has_unlocked_, false); }

  // --- Results of actions. ---
  void applied(TransactionId id, std::uint64_t boot);
  void learn(TransactionId id, Outcome outcome);
  void pushed(TransactionId id, std::uint16_t server);
  void tick(std::int64_t now_ms);

  std::vector<Action> take_actions() { return std::exchange(actions_, {}); }

  // --- Questions. ---
  // Of a read that starts now. EAGAIN: some of it is about to change.
  int stamp(FileId file, const std::vector<Extent>& extents, std::int64_t now_ms,
            std::uint64_t& stamp);
  // Null if it is not known.
  const TransactionPart* part(TransactionId id) const;

  // Decided, but not in the files yet.
  bool must_apply(TransactionId id) const;

  // A log that leads to the same state, without what is over. Everything that was applied must be
  // on the disk.
  std::vector<std::string> records() const;
  std::string compacted() const;

 private:
  enum class State {
    Staging,     // the client sends its parts
    Prepared,    // said yes; locked
    Committing,  // decided; not in the files yet; locked
    Committed,   // kept for questions
  };

  struct Known {
    State state = State::Staging;
    TransactionPart part;
    std::map<std::uint32_t, Stage> stages;
    std::size_t staged_bytes = 0;
    std::int64_t since_ms = 0;
    std::int64_t next_try_ms = 0;
    std::vector<std::uint16_t> waiting;  // at the coordinator: servers that have not committed
    std::vector<std::uint64_t> tokens;   // to be answered when it is committed
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

  // A file that transactions read: when what of it changed last, by clock_.
  struct Watched {
    std::uint64_t since = 0;  // what changed before is not known
    std::uint64_t whole = 0;  // all of it
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
  std::unordered_map<FileId, std::vector<Plain>> plain_;  // under way
  std::uint64_t last_plain_ = 0;
  std::unordered_map<FileId, Watched> watched_;
  std::size_t granule_count_ = 0;
  bool has_unlocked_ = false;
  std::size_t staged_bytes_ = 0;
  std::uint64_t commits_ = 0;
  std::vector<Action> actions_;
};

}  // namespace score::pario
