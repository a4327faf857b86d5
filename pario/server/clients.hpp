// Accepts clients and holds their connections. It limits the number of connections, of sessions
// over PM, and the memory of requests.
#pragma once

#include "base/os/log.hpp"
#include "pario/core/volume_file.hpp"
#include "pario/server/connection.hpp"

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace score::pario {

class Clients final : public ConnectionOwner {
 public:
  struct Hooks {
    std::function<void(TransferPtr)> execute;
    std::function<void(Connection&)> closed;  // see ConnectionOwner
  };

  // `buffers` must outlive all transfers.
  Clients(Connection::Identity identity, Buffers& buffers, Ring& ring, Hooks hooks);
  ~Clients();

  // Listens at the socket, or, if it is empty, at the address. `message` receives the error text.
  // Returns an errno value.
  int listen(const ServerAddress& address, UniqueFd socket, std::string& message);
  // Call this once per second, the first time to start. It accepts clients again after a lack of
  // descriptors.
  void tick();
  // Call this at the end of a turn, after the replies.
  void end_turn();

  SessionQueue& sessions() override { return sessions_; }

  // Returns what is counted here: requests, refusals, and the use of PM.
  Statistics counts() const;

 private:
  struct Accept;

  void accept();
  void accepted(int result);
  // Returns whether there is a place for one more. Strangers without the key cannot take all: the
  // oldest of them is closed.
  bool make_place();

  void execute(TransferPtr transfer) override;
  bool admit(Connection& connection, std::size_t memory) override;
  void release(std::size_t memory) override;

  Buffers& buffers() override { return buffers_; }

  void refused(Refused why, const std::string& peer) override;
  void fell_back(int error, const std::string& peer) override;

  void moved_by_pm(std::uint64_t bytes) override { counts_.pm_bytes += bytes; }

  void closed(Connection& connection) override { hooks_.closed(connection); }

  void ended(Connection& connection) override { ended_.push_back(&connection); }

  Connection::Identity identity_;
  Buffers& buffers_;
  Ring& ring_;
  Hooks hooks_;
  std::unique_ptr<Accept> accept_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> unproven_;  // have not shown the key, oldest first
  std::vector<Connection*> ended_;
  std::vector<Connection*> waiting_;  // for memory
  std::size_t memory_ = 0;
  SessionQueue sessions_;
  Statistics counts_;
  LogLimiter limiter_;
};

}  // namespace score::pario
