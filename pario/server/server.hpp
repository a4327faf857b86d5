// Runs one server of a volume: its clients, and the parts of the volume that it serves.
#pragma once

#include "pario/server/client_requests.hpp"
#include "pario/server/clients.hpp"
#include "pario/server/parts.hpp"

#include <string>
#include <vector>

namespace score::pario {

// Collects what waits for the commit of a turn: answers, and Syncs to start.
class Turn {
 public:
  void answer(TransferPtr transfer) { answered_.push_back(std::move(transfer)); }

  void sync(TransferPtr transfer) { syncs_.push_back(std::move(transfer)); }

  bool is_empty() const { return answered_.empty() && syncs_.empty(); }

  // Commits the parts, and starts the Syncs. Returns an errno value.
  int commit(Parts& parts);
  // Sends the answers; `error` is the result of the commit.
  void reply(int error, bool has_copy);

  // Returns the number of replies since the start.
  std::uint64_t replied() const { return replied_; }

 private:
  std::vector<TransferPtr> answered_;
  std::vector<TransferPtr> syncs_;
  std::uint64_t commits_ = 0;
  std::uint64_t synced_ = 0;  // commits that are on the disk
  std::uint64_t replied_ = 0;
};

class Server final {
 public:
  explicit Server(ServerOptions options);

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
  void tick(int result = 0);
  void execute(TransferPtr transfer);
  void execute_here(TransferPtr transfer);
  void answer(TransferPtr transfer);
  void read(TransferPtr transfer);
  void lock(TransferPtr transfer);
  void statistics(Transfer& transfer);
  void end_turn();

  ServerOptions options_;
  Buffers buffers_;  // outlives everything that holds memory of it
  Parts parts_;
  Event<&Server::tick> tick_{*this};
  Clients clients_;
  Turn turn_;
  ClientRequests requests_;
  volatile bool is_stopped_ = false;
  bool must_remove_ = false;
  int fault_ = 0;  // errno: the server cannot continue
  Ring ring_;      // last member: it ends operations in flight before their memory is freed
};

}  // namespace score::pario
