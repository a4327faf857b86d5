// The transactions of this server: the state machine of core/transactions.hpp with its log, its
// files and its peers.
#pragma once

#include "pario/core/transactions.hpp"
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
    Peers& peers;
  };

  // `finish` gets each transfer with its answer.
  TransactionRequests(const Parts& parts, std::uint16_t server, Finish finish);

  // Reads the log and completes what it has. Errno value.
  int open(int directory);
  void run(TransferPtr transfer);
  // Of a Read with kStamped that starts now.
  int stamp(const Request& request, std::uint64_t& stamp) const;
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

  struct Deferred {
    std::uint64_t position = 0;  // of the log
    Action action;
  };

  int run_stage(const Transfer& transfer);
  int reserve(const Request& request);
  void release(TransactionId id);
  void run_actions();
  void run_action(const Action& action);
  void apply(TransactionId id);
  int write(const WriteAccess& write);
  void reply(const Action& action);
  void ask(const Action& action);
  void push(const Action& action);
  void synced(int result);
  int compact();

  Parts parts_;
  Finish finish_;
  TransactionFile log_;
  Transactions transactions_;
  std::uint64_t boot_ = boot_number();
  Syncing syncing_{*this};
  bool is_syncing_ = false;
  std::uint64_t appended_ = 0;  // bytes since the start; the log becomes shorter sometimes
  std::uint64_t syncing_to_ = 0;
  std::uint64_t synced_ = 0;
  std::uint64_t compacted_size_ = 0;
  std::deque<Deferred> deferred_;
  int error_ = 0;
  std::uint64_t next_token_ = 1;
  std::map<std::uint64_t, TransferPtr> waiting_;  // by token
  std::map<TransactionId, std::uint64_t> reserved_;
  std::set<FileId> touched_;  // since the last compaction
};

}  // namespace score::pario
