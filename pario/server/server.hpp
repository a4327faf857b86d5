// Runs one server of a volume: its socket, its connections, its store and its data.
#pragma once

#include "base/os/log.hpp"
#include "pario/core/rank_barriers.hpp"
#include "pario/core/volume_file.hpp"
#include "pario/server/connection.hpp"
#include "pario/server/data_requests.hpp"
#include "pario/server/moves.hpp"
#include "pario/server/replication.hpp"
#include "pario/server/transaction_requests.hpp"
#include "pario/store/leases.hpp"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace score::pario {

struct ServerOptions {
  VolumeDescription volume;
  std::uint32_t server = 0;    // index into volume.servers
  std::string directory;       // must exist, and be used by no other server
  std::uint64_t capacity = 0;  // bytes
  UniqueFd listener;           // a listening socket; empty: opened at the address of the volume
};

class Server final : public ConnectionOwner {
 public:
  explicit Server(ServerOptions options);
  ~Server();

  // Opens everything. `message` receives the error text. Returns an errno value.
  int start(std::string& message);
  // Runs until stop(). Returns an errno value.
  int run();

  // Returns true if run() has ended because the volume has expired or was destroyed. The caller
  // must then call remove_all().
  bool must_remove() const { return must_remove_; }

  void remove_all();

  // May be called from a signal handler.
  void stop() { is_stopped_ = true; }

 private:
  struct Accept;
  struct Tick;
  struct News;
  struct Copy;

  // Holds the objects that a request for one of the parts on this server uses.
  struct Parts {
    Store& store;
    DataFiles& files;
    Metadata& metadata;
    DataRequests& data;
    TransactionRequests& transactions;
  };

  int lock_directory(std::string& message);
  int open_store(std::string& message);
  int open_copy(std::string& message);
  int open_replicas(std::string& message);
  Store::Identity identity_of(std::uint32_t part) const;
  std::uint32_t copied_part() const;
  Parts parts_of(const Request& request);
  int listen(std::string& message);
  int listen_soon(std::string& message);
  void accept();
  void accepted(int result);
  void tick();
  void wait_for_peers();
  void watch_time();
  void route(TransferPtr transfer);
  void route_admitted();
  void execute_here(TransferPtr transfer);
  void answer(TransferPtr transfer);
  void read(TransferPtr transfer);
  void end_turn();
  void start_syncs();
  void statistics(Transfer& transfer);
  void gather(TransferPtr transfer);
  int describe_data(Answer& answer) const;
  int lease(const Transfer& transfer);
  bool has_direct_writer(FileId id);
  void end_parked(const std::vector<RankBarriers::Answer>& answers);
  void remove_ended();
  std::int64_t timeout_us() const;
  void wake_due();
  void run_sessions();

  void execute(TransferPtr transfer) override;
  bool admit(Connection& connection, std::size_t memory) override;
  void release(std::size_t memory) override;

  Buffers& buffers() override { return buffers_; }

  void refused(Refused why, const std::string& peer) override;
  void fell_back(int error, const std::string& peer) override;

  void moved_by_pm(std::uint64_t bytes) override { counts_.pm_bytes += bytes; }

  void closed(Connection& connection) override;
  void wake(Connection& connection) override;
  bool admit_session(Connection& connection) override;

  void dismiss_session(Connection& connection) override { std::erase(sessions_, &connection); }

  void ended(Connection& connection) override;

  ServerOptions options_;
  Connection::Identity identity_;
  Buffers buffers_;  // outlives everything that holds memory of it
  UniqueFd directory_;
  UniqueFd listener_;
  std::unique_ptr<Store> store_;
  DataFiles files_;
  std::unique_ptr<Metadata> metadata_;
  std::unique_ptr<DataRequests> data_;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<Peers> leaders_;  // replicas 2: the leaders of other parts
  std::unique_ptr<TransactionRequests> transactions_;
  std::unique_ptr<Moves> moves_;
  std::unique_ptr<Copy> copy_;                  // replicas 2: of the part of the previous server
  std::unique_ptr<Replication> own_replica_;    // replicas 2
  std::unique_ptr<Replication> other_replica_;  // of copy_
  std::int64_t last_turn_ms_ = 0;
  std::unique_ptr<Accept> accept_;
  std::unique_ptr<Tick> tick_;
  std::unique_ptr<News> news_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> ended_;
  std::vector<Connection*> waiting_;   // for memory
  std::vector<Connection*> sessions_;  // connections with one
  std::vector<Connection*> woken_;     // whose sessions have pending work
  std::vector<TransferPtr> answered_;  // in this turn; metadata waits for the commit
  std::vector<TransferPtr> syncs_;     // start after the commit
  Leases leases_{files_};
  RankBarriers rank_barriers_;
  std::unordered_map<std::uint64_t, TransferPtr> parked_;  // requests that wait for other ranks
  std::uint64_t last_token_ = 0;
  std::uint64_t written_directly_ = 0;  // bytes, as reported by clients with leases
  bool is_accepting_ = false;
  std::size_t memory_ = 0;
  std::uint64_t commits_ = 0;
  std::uint64_t synced_ = 0;  // commits that are on the disk
  Statistics counts_;
  std::uint64_t replied_ = 0;
  LogLimiter limiter_;
  volatile bool is_stopped_ = false;
  bool must_remove_ = false;
  int fault_ = 0;  // errno: the server cannot continue
  Ring ring_;      // last member: it ends operations in flight before their memory is freed
};

}  // namespace score::pario
