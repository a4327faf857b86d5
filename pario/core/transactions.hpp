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
// A server in doubt asks the coordinator. One that knows nothing of a transaction, or has not
// decided, says "aborted" and will never commit it: it is the first to be prepared, and a client
// that stages again gets a different part. So a client that dies holds locks for kDoubtMs.
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
  // `boot`: of the system now.
  void replay(LogRecord record, std::uint64_t boot);
  // Committed transactions that are not in the files, in the order of their commits: to be applied.
  // Each is a call of applied().
  std::vector<TransactionId> recovered(std::int64_t now_ms);

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

  // --- Results of actions. ---
  void applied(TransactionId id, std::uint64_t boot);
  void told(TransactionId id, Outcome outcome);
  void pushed(TransactionId id, std::uint16_t server);
  void tick(std::int64_t now_ms);

  std::vector<Action> take_actions() { return std::exchange(actions_, {}); }

  // --- Questions. ---
  // Of a read that starts now. EAGAIN: some of it is about to change.
  int stamp(FileId file, const std::vector<Extent>& extents, std::uint64_t& stamp) const;
  // Null if it is not known.
  const TransactionPart* part(TransactionId id) const;

  // Decided, but not in the files yet.
  bool must_apply(TransactionId id) const;

  // A log that leads to the same state, without what is over. Everything that was applied must be
  // on the disk.
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
  };

  struct Held {
    TransactionId id = 0;
    Extent extent;
    bool is_write = false;
  };

  using Place = std::map<TransactionId, Known>::iterator;

  int check(const TransactionPart& part) const;
  bool is_changed(const ReadAccess& read) const;
  bool is_held(FileId file, const Extent& extent, bool for_write, TransactionId by) const;
  void lock(const TransactionPart& part);
  void unlock(const TransactionPart& part);
  void set_stamps(const TransactionPart& part);
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
  std::uint64_t floor_ = 1;  // reads before it are refused: what changed since is not known
  std::map<TransactionId, Known> known_;
  std::unordered_map<FileId, std::vector<Held>> held_;
  std::unordered_map<FileId, std::unordered_map<std::uint64_t, std::uint64_t>> changed_;
  std::size_t changed_count_ = 0;
  std::size_t staged_bytes_ = 0;
  std::vector<TransactionId> order_;  // of commits, during replay
  std::vector<Action> actions_;
};

}  // namespace score::pario
