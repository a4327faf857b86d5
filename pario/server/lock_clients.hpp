// Tracks the clients that have locks in the files of a part, and the requests that wait for one.
// The locks themselves are in the store (FileUses). A client is lost, and its locks are released,
// if its connection has ended and no new one follows, or if it is silent for long.
#pragma once

#include "pario/server/io/peers.hpp"
#include "pario/server/io/transfer.hpp"
#include "pario/store/store.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

namespace score::pario {

class LockClients {
 public:
  // Clients report every 2 s. A client of a server that was killed connects again meanwhile.
  static constexpr std::int64_t kReconnectMs = 10'000;
  static constexpr std::int64_t kSilenceLimitMs = 40'000;
  static constexpr std::int64_t kWaitMs = 1'000;

  // Requests of `peers` go to the leader of the part.
  LockClients(std::uint32_t part, Store& store, Asker& peers)
      : part_(part), store_(store), peers_(peers) {}

  // Notes a Lock or Hold of a client. ESTALE: it has a newer connection.
  int note(const Transfer& transfer, std::int64_t now_ms);
  // Returns true if the Lock was refused and waits; call park() then, otherwise answered().
  bool must_wait(Transfer& transfer, std::int64_t now_ms) const;
  void park(TransferPtr transfer);
  void answered(const Transfer& transfer);
  // Returns requests that may succeed now.
  std::vector<TransferPtr> take_ready();
  // A connection has ended. Returns its waiting requests.
  std::vector<TransferPtr> leave(const Connection& connection, std::int64_t now_ms);
  // Call this once per second. Returns requests that have waited long enough. `leads`: this server
  // leads the part.
  std::vector<TransferPtr> tick(bool leads, std::int64_t now_ms);

 private:
  struct Client {
    std::uint64_t connection = 0;  // its newest one; 0: none yet
    bool is_connected = false;
    std::int64_t seen_ms = 0;
    std::set<FileId> files;  // in which it has locks
  };

  template <typename Condition>
  std::vector<TransferPtr> end_if(Condition ends);
  void load(std::int64_t now_ms);
  void drop(std::uint64_t client, FileId file);

  std::uint32_t part_;
  Store& store_;
  Asker& peers_;
  std::map<std::uint64_t, Client> clients_;
  std::deque<TransferPtr> waiting_;
  std::set<FileId> freed_;
  bool has_led_ = false;
};

}  // namespace score::pario
