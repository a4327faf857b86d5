// Holds the parts of the volume that this server serves: its own one and, with two replicas, a copy
// of that of the previous server.
#pragma once

#include "pario/core/volume_file.hpp"
#include "pario/server/copies.hpp"
#include "pario/server/data_requests.hpp"
#include "pario/server/holds/directory_reports.hpp"
#include "pario/server/holds/purges.hpp"
#include "pario/server/lock_clients.hpp"
#include "pario/server/moves.hpp"
#include "pario/server/replication.hpp"
#include "pario/server/transaction_requests.hpp"

#include <functional>
#include <memory>
#include <string>

namespace score::pario {

struct ServerOptions {
  VolumeDescription volume;
  std::uint32_t server = 0;    // index into volume.servers
  std::string directory;       // must exist, and be used by no other server
  std::uint64_t capacity = 0;  // bytes
  UniqueFd listener;           // a listening socket; empty: opened at the address of the volume
};

// Holds a part's store and data, and the objects that run requests for it.
struct Part {
  Part(std::uint32_t server, std::string directory_path, std::uint64_t capacity)
      : index(server), path(std::move(directory_path)), files(capacity) {}

  // Opens the store and the data in `directory`. `message` receives the error text. Returns an
  // errno value.
  int open(const VolumeDescription& volume, const std::function<bool(FileId)>& is_left_over,
           std::string& message);
  // Makes the objects that run requests. `finish` receives each transfer with its answer.
  void prepare(std::uint32_t servers, Ring& ring, Peers& leaders,
               const DataRequests::Finish& finish);
  // If another replica may have led meanwhile, what is known of other servers is forgotten.
  void watch_view();
  // Removes the data of files after a commit of the store with this result.
  void remove_unlinked(int error);
  // Call this once per second. Returns Locks that have waited long enough.
  std::vector<TransferPtr> tick();

  std::uint32_t index;  // of the server whose part it is
  std::string path;
  UniqueFd directory;
  std::unique_ptr<Store> store;
  DataFiles files;
  std::unique_ptr<Metadata> metadata;
  std::unique_ptr<DataRequests> data;
  std::unique_ptr<TransactionRequests> transactions;
  std::unique_ptr<Replication> replica;  // with two replicas
  std::unique_ptr<Purges> purges;
  std::unique_ptr<LockClients> locks;
  std::unique_ptr<DirectoryReports> reports;
  std::uint64_t seen_view = 0;
};

class Parts {
 public:
  // The hooks are those of Replication; `arrived` runs a request as if it had just arrived.
  Parts(const ServerOptions& options, Ring& ring, Replication::Hooks hooks,
        Copies::Arrived arrived);
  ~Parts();

  // Locks the directory and opens the server's own part. `message` receives the error text. Returns
  // an errno value.
  int open(std::string& message);
  // Opens everything else once the ring is open.
  int start(std::string& message);

  Part& own() { return own_; }

  bool has_copy() const { return copy_ != nullptr; }

  // Returns false if no part here can run the request.
  bool serves(const Request& request);
  Part& of(const Request& request);

  // Runs a request, at the replica that leads if there are two.
  void run(TransferPtr transfer);

  // Runs a Copy.
  void copy(TransferPtr transfer);

  // Passes a transfer on when the homes of the directories that it has changed know of that.
  void report(TransferPtr transfer);

  // Completes a Move that metadata has carried out.
  void complete_move(TransferPtr transfer) { moves_->run(std::move(transfer)); }

  // A client has disconnected.
  void leave(const Connection& connection);

  // Answers a request that has ended here; a change of a leader is forwarded first.
  void finish(TransferPtr transfer);
  // Runs plain changes that have waited for transactions, and Locks that have waited for others.
  void run_admitted();
  // Commits the stores. Returns an errno value.
  int commit();
  // Call this at the end of a turn. Returns an errno value: no durability can be guaranteed.
  int end_turn();
  // Call this once per second.
  void tick();
  // Call this in each turn.
  void watch_time();
  // Call this once; the results of other servers are handled from then on.
  void wait_for_peers();

 private:
  void receive_results(int result);
  int open_copy(std::string& message);
  int open_replicas(std::string& message);

  const ServerOptions& options_;
  Ring& ring_;
  Replication::Hooks hooks_;
  Copies::Arrived arrived_;
  std::uint32_t servers_;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<Peers> leaders_;  // with two replicas: the leaders of other parts
  // For requests whose answers wait for no third server. The threads of the other ones can wait for
  // requests that a server sends back, and behind those nothing may queue on which these wait.
  std::unique_ptr<Peers> quick_;
  Part own_;
  std::unique_ptr<Part> copy_;  // with two replicas
  std::unique_ptr<Moves> moves_;
  std::unique_ptr<Copies> copies_;
  Event<&Parts::receive_results> news_{*this};
  std::int64_t last_turn_ms_ = 0;
};

}  // namespace score::pario
