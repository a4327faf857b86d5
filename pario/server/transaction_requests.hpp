// The transactions of a part on this server: the state machine of core/transactions.hpp with its
// log, its files and its peers. Of two replicas the leader runs requests and gives its records to
// the other one, which appends them to its own log.
#pragma once

#include "pario/core/range_gate.hpp"
#include "pario/core/safe_actions.hpp"
#include "pario/core/unflushed.hpp"
#include "pario/server/metadata.hpp"
#include "pario/server/peers.hpp"
#include "pario/server/ring.hpp"
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
    Peers& leaders;  // of other parts
  };

  // What the replication of the part does for it.
  struct Replica {
    // Gives a record to the follower. `done`: whether the follower has it.
    std::function<void(std::string record, std::function<void(bool)> done)> forward;
    // The file changes, and the follower does not get that.
    std::function<void(FileId)> note_missed;
    RangeGate* gate = nullptr;
  };

  // `finish` gets each transfer with its answer.
  TransactionRequests(const Parts& parts, std::uint16_t part, Finish finish);

  // Reads the log. Errno value.
  int open(int directory);

  // --- One of two replicas; without them it leads from the start. ---
  void set_replica(Replica replica) { replica_ = std::move(replica); }

  // From now on requests are run. Nothing if it leads already.
  void start_leading();
  // Requests that wait are answered with EREMCHG.
  void stop_leading();
  // The follower gets these records first, then each new one.
  std::vector<std::string> begin_forwarding();
  void follower_is_lost();
  // A LogTransaction from the leader; answered when it is as safe as it must be.
  void follow(TransferPtr transfer);
  // The leader begins to fill this one. Errno value.
  int clear();

  void run(TransferPtr transfer);
  // Of a Read with kStamped that starts now.
  int stamp(const Request& request, std::uint64_t& stamp);
  // A plain change of data: false if it must wait; it is in take_admitted() later.
  bool admit(TransferPtr& transfer);
  std::vector<TransferPtr> take_admitted();
  // An admitted change has ended.
  void end_plain(const Transfer& transfer);

  // Data of the file changes without being admitted.
  void file_changed(FileId file) { transactions_->file_changed(file); }

  bool is_in_use(FileId file) const;

  // Transactions that a sync of the file, which begins now, puts on the disk.
  std::vector<TransactionId> begin_flush(FileId file) const { return unflushed_.of(file); }

  // The sync has worked, with transfer->flushed: the log says so before `finish` gets the transfer
  // again.
  void end_flush(TransferPtr transfer);
  // Once per second.
  void tick();
  // At the end of a turn: starts the sync that replies wait for. Errno value: the log cannot be
  // written, and nothing can be promised any more.
  int end_turn();

 private:
  using Action = Transactions::Action;

  struct Syncing final : Completion {
    explicit Syncing(TransactionRequests& made) : owner(made) {}

    void complete(int result) override { owner.synced(result); }

    TransactionRequests& owner;
  };

  // The log is written after a file.
  struct Flush final : Completion {
    Flush(TransactionRequests& made, TransferPtr of) : owner(made), transfer(std::move(of)) {}

    void complete(int result) override { owner.flush_done(*this, result); }

    TransactionRequests& owner;
    TransferPtr transfer;
    UniqueFd log;  // of its own: the log may be replaced meanwhile
  };

  // Committed, and on its way into the files of both replicas.
  struct Applying {
    std::vector<RangeGate::Ticket> tickets;
    std::size_t missing = 0;  // tickets that were not let in
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
  Replica replica_;  // without `forward`: there is no other one
  TransactionFile log_;
  std::unique_ptr<Transactions> transactions_;
  SafeActions actions_;
  std::uint64_t appended_ = 0;  // records, as actions_ counts them
  bool is_leading_ = false;
  unsigned epoch_ = 0;  // of what is under way; changed by reset()
  std::uint64_t boot_ = boot_number();
  Syncing syncing_{*this};
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
