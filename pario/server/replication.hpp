// Implements one of the two replicas of a part of the volume. The leader runs requests and sends
// changes to the follower before it answers. The follower carries them out in the same order.
#pragma once

#include "pario/core/range_gate.hpp"
#include "pario/core/replica.hpp"
#include "pario/server/io/forwarder.hpp"
#include "pario/server/io/peers.hpp"
#include "pario/server/metadata.hpp"
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
    bool is_first = false;   // leads if both replicas are new
    std::uint64_t capacity = 0;
  };

  struct Parts {
    Store& store;
    DataFiles& files;
    Metadata& metadata;
    Peers& peers;
    TransactionRequests& transactions;
  };

  // The server provides these functions.
  struct Hooks {
    std::function<void(TransferPtr)> execute;  // runs locally; calls local_done() for a change
    std::function<void(TransferPtr)> answer;   // sends the answer after the commit of this turn
  };

  Replication(const Place& place, const Parts& parts, Hooks hooks);
  ~Replication();

  // Returns an errno value.
  int open();
  void run(TransferPtr transfer);
  // Handles a change that this replica has carried out as the leader.
  void local_done(TransferPtr transfer);

  void run_results() { forwarder_->run_results(); }

  // Call this once per second.
  void tick();
  // Call this when the process was stopped for a while.
  void stood_still();

  // Returns an errno value: the store has failed, and no durability can be guaranteed.
  int fault() const { return fault_; }

  bool leads() const { return replica_->serves(); }

  const ReplicaView& view() const { return replica_->view(); }

 private:
  // Describes the progress of the leader in filling a replica with data files.
  struct Copying {
    std::deque<FileId> files;
    FileId file = 0;  // 0: none
    std::shared_ptr<DataFile> open;
    std::uint64_t offset = 0;
    RangeGate::Ticket ticket = 0;
  };

  // FillBegin has this flag if the follower keeps its files, except those that the leader tells it
  // to drop.
  static constexpr std::uint64_t kQuick = std::uint64_t{1} << 63;
  static constexpr std::uint32_t kDroppedFiles = 100;  // a table number of FillTable

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
  std::uint64_t applied_ = 0;   // as the follower: last change in the store
  bool is_filling_ = false;
  std::uint64_t filling_view_ = 0;
  std::unique_ptr<Copying> copying_;
  // These changes were carried out here and refused by the other replica, which has taken over or
  // has lost all its data.
  std::vector<std::shared_ptr<TransferPtr>> doubtful_;
  bool is_in_doubt_ = false;  // the follower has refused a request
  std::uint64_t repaired_files_ = 0;
  // These are files whose data a follower of view `missed_since_` lacks, or has although they were
  // removed.
  std::set<FileId> missed_;
  std::uint64_t missed_since_ = 0;  // 0: not known
  ReplicaView peer_;                // the view of the peer that was last seen
  int fault_ = 0;
};

// Returns true if the operation may change the contents of a part.
bool is_change(Op op);

// Returns the time by the clock that the kernel uses for file times. A file that is written
// directly after this call never has an earlier time.
std::int64_t wall_ns();

}  // namespace score::pario
