// Runs the transactions of a part on this server: the state machine of core/transactions.hpp with
// its log, its files and its peers. Of two replicas the leader runs requests and sends its records
// to the other one, which appends them to its own log.
#pragma once

#include "pario/core/range_gate.hpp"
#include "pario/core/safe_actions.hpp"
#include "pario/core/unflushed.hpp"
#include "pario/server/io/peers.hpp"
#include "pario/server/io/ring.hpp"
#include "pario/server/metadata.hpp"
#include "pario/store/transaction_file.hpp"

#include <deque>
#include <functional>
#include <set>

namespace score::pario {

class TransactionRequests {
 public:
  using Finish = std::function<void(TransferPtr)>;

  struct Parts {
    Ring& ring;
    DataFiles& files;
    Metadata& metadata;
    Peers& leaders;  // of the other parts
  };

  // These functions of the part's replication are used here.
  struct Replica {
    // Sends a record to the follower. `done` receives whether the follower has it.
    std::function<void(std::string record, std::function<void(bool)> done)> forward;
    // Notes that the file changes without the follower receiving the change.
    std::function<void(FileId)> note_missed;
    RangeGate* gate = nullptr;
  };

  // `finish` receives each transfer with its answer.
  TransactionRequests(const Parts& parts, std::uint16_t part, Finish finish);

  // Reads the log. Returns an errno value.
  int open(int directory);

  // --- One of two replicas. Without set_replica() this server leads from the start. ---
  void set_replica(Replica replica) { replica_ = std::move(replica); }

  // Runs requests from now on. Does nothing if this server leads already.
  void start_leading();
  // Answers waiting requests with EREMCHG.
  void stop_leading();
  // Returns the records that the follower must receive first, before each new one.
  std::vector<std::string> begin_forwarding();
  void follower_is_lost();
  // Handles a LogTransaction from the leader. It is answered when it is as safe as required.
  void follow(TransferPtr transfer);
  // Prepares for being filled by the leader. Returns an errno value.
  int clear();

  void run(TransferPtr transfer);
  // Returns the stamp of a Read with kStamped that starts now.
  int stamp(const Request& request, std::uint64_t& stamp);
  // Admits a plain change of data. Returns false if it must wait; take_admitted() returns it later.
  bool admit(TransferPtr& transfer);
  std::vector<TransferPtr> take_admitted();
  // Ends an admitted change.
  void end_plain(const Transfer& transfer);

  // Records that data of the file changes without being admitted.
  void file_changed(FileId file) { transactions_->file_changed(file); }

  bool is_in_use(FileId file) const;

  // Returns the transactions that a sync of the file, which begins now, puts on the disk.
  std::vector<TransactionId> begin_flush(FileId file) const { return unflushed_.of(file); }

  // Call this when the sync has succeeded, with transfer->flushed. The log records that before
  // `finish` gets the transfer again.
  void end_flush(TransferPtr transfer);
  // Call this once per second.
  void tick();
  // Call this at the end of a turn. It starts the sync that replies wait for. Returns an errno
  // value: the log cannot be written, and no durability can be guaranteed any more.
  int end_turn();

 private:
  using Action = Transactions::Action;

  // Writes the log after a file.
  struct Flush final : Completion {
    Flush(TransactionRequests& made, TransferPtr of) : owner(made), transfer(std::move(of)) {}

    void complete(int result) override { owner.flush_done(*this, result); }

    TransactionRequests& owner;
    TransferPtr transfer;
    UniqueFd log;  // a duplicate, because the log may be replaced meanwhile
  };

  // Describes a committed transaction whose writes are being applied to the files of both replicas.
  struct Applying {
    std::vector<RangeGate::Ticket> tickets;
    std::size_t missing = 0;  // tickets that have not been admitted
    bool is_written = false;
    std::set<FileId> files;
  };

  struct Parked {
    TransferPtr transfer;
    std::int64_t since_ms = 0;
  };

  void reset(int error);
  bool register_plain(Transfer& transfer);
  int run_stage(const Transfer& transfer);
  int reserve(const Request& request);
  void release(TransactionId id);
  void run_actions();
  void run_action(const Action& action);
  void append(const Action& action);
  void apply(TransactionId id);
  void entered(TransactionId id);
  void note_missed(TransactionId id);
  void end_applying(TransactionId id);
  int write_all(const TransactionPart& part);
  int write(const WriteAccess& write);
  void reply(const Action& action);
  void ask(const Action& action);
  void push(const Action& action);
  void synced(int result);
  void flush_done(Flush& flush, int result);
  int compact();

  Parts parts_;
  std::uint16_t part_;
  Finish finish_;
  Replica replica_;  // empty if there is no other replica
  TransactionFile log_;
  std::unique_ptr<Transactions> transactions_;
  SafeActions actions_;
  std::uint64_t appended_ = 0;  // records, as actions_ counts them
  bool is_leading_ = false;
  unsigned epoch_ = 0;  // of the operations in flight; changed by reset()
  std::uint64_t boot_ = boot_number();
  Event<&TransactionRequests::synced> syncing_{*this};
  bool is_syncing_ = false;
  unsigned syncing_epoch_ = 0;
  std::uint64_t syncing_to_ = 0;  // position of actions_
  std::uint64_t compacted_size_ = 0;
  int error_ = 0;
  std::uint64_t next_token_ = 1;
  std::map<std::uint64_t, TransferPtr> waiting_;  // by token
  std::map<TransactionId, std::uint64_t> reserved_;
  std::map<TransactionId, Applying> applying_;
  bool is_running_ = false;
  std::deque<Parked> parked_;  // plain changes of locked bytes
  bool must_admit_ = false;
  std::vector<TransferPtr> admitted_;
  std::set<FileId> touched_;  // since the last compaction
  Unflushed unflushed_;
  std::map<Flush*, std::unique_ptr<Flush>> flushes_;
};

}  // namespace score::pario
