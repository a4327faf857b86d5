// One of the two replicas of a part of the volume: as the leader it runs requests and gives changes
// to the follower before it answers, as the follower it carries them out in the same order.
#pragma once

#include "pario/core/range_gate.hpp"
#include "pario/core/replica.hpp"
#include "pario/server/forwarder.hpp"
#include "pario/server/metadata.hpp"
#include "pario/server/peers.hpp"
#include "pario/server/transaction_requests.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

namespace score::pario {

class Replication {
 public:
  struct Place {
    const VolumeDescription& volume;
    std::uint32_t part = 0;
    std::uint32_t peer = 0;  // the server of the other replica
    bool is_first = false;   // of two new ones this one leads
    std::uint64_t capacity = 0;
  };

  struct Parts {
    Store& store;
    DataFiles& files;
    Metadata& metadata;
    Peers& peers;
    TransactionRequests& transactions;
  };

  // What the server does for it.
  struct Hooks {
    std::function<void(TransferPtr)> execute;  // locally; then local_done() if it is a change
    std::function<void(TransferPtr)> answer;   // after the commit of this turn
  };

  Replication(const Place& place, const Parts& parts, Hooks hooks);
  ~Replication();

  // Errno value.
  int open();
  void run(TransferPtr transfer);
  // A change that this replica has carried out as the leader.
  void local_done(TransferPtr transfer);

  void run_results() { forwarder_->run_results(); }

  // Once per second.
  void tick();
  // The process stood still.
  void stood_still();

  // Errno value: the store does not work, and nothing can be promised.
  int fault() const { return fault_; }

  const ReplicaView& view() const { return replica_->view(); }

 private:
  // What the leader copies into a replica that is filled.
  struct Copying {
    std::deque<FileId> files;
    FileId file = 0;  // 0: none
    std::shared_ptr<DataFile> open;
    std::uint64_t offset = 0;
    RangeGate::Ticket ticket = 0;
  };

  // Of FillBegin: the follower keeps its files, but for those that it is told to drop.
  static constexpr std::uint64_t kQuick = std::uint64_t{1} << 63;
  static constexpr std::uint32_t kDroppedFiles = 100;  // a table of FillTable

  void lead(TransferPtr transfer);
  void start_change(TransferPtr transfer);
  void follow(TransferPtr transfer);
  void follow_metadata(Transfer& transfer);
  void join(TransferPtr transfer);
  void fill(TransferPtr transfer);
  void note_missed(const Transfer& transfer);
  bool is_quick() const;
  void send_dropped();
  int begin_filling(std::uint64_t view);
  int drop_files(std::string_view ids);
  int end_filling(std::uint64_t view);
  void end_change(TransferPtr transfer);
  void forward(Request request, const char* data, std::shared_ptr<void> keeps,
               Forwarder::Done done);
  bool is_delivered(int error);
  void forwarded(std::shared_ptr<TransferPtr> shared, int error);
  void ask_who_leads();
  void settle_doubtful();
  void settle_transactions();
  void forward_record(std::string record, const std::function<void(bool)>& done);
  void note_missed(FileId file);
  void run_actions();
  void set_capacity();
  void store_view();
  void probe();
  void start_repair();
  void send_tables();
  void send_transactions();
  void copy_next();
  void copy_range(const Extent& extent);
  void end_file();
  void end_repair();
  void stop_repair();

  Place place_;
  Parts parts_;
  Hooks hooks_;
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<Forwarder> forwarder_;
  RangeGate gate_;
  bool is_probing_ = false;
  std::uint64_t sequence_ = 0;  // of the last change that was forwarded
  std::uint64_t applied_ = 0;   // as the follower: of the last change of the store
  bool is_filling_ = false;
  std::uint64_t filling_view_ = 0;
  std::unique_ptr<Copying> copying_;
  // Carried out here, refused by the other one: it has taken over, or has lost everything.
  std::vector<std::shared_ptr<TransferPtr>> doubtful_;
  bool is_in_doubt_ = false;  // the follower has refused something
  std::uint64_t repaired_files_ = 0;
  // Files whose data a follower of view `missed_since_` lacks, or has although they are gone.
  std::set<FileId> missed_;
  std::uint64_t missed_since_ = 0;  // 0: not known
  ReplicaView peer_;                // as it was seen last
  int fault_ = 0;
};

// May it change what a part has?
bool is_change(Op op);

// By the clock that the kernel gives files their times by: one that was written directly after this
// never has an earlier time.
std::int64_t wall_ns();

}  // namespace score::pario
