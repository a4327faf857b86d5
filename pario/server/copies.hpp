// Runs Copies: a server reads bytes of one file, here or on another server, and writes them to a
// file here. The request becomes a Read, and then an ordinary Write, so replicas, transactions and
// the quota treat it as one that a client has sent.
#pragma once

#include "pario/server/data_requests.hpp"
#include "pario/server/io/peers.hpp"

#include <functional>

namespace score::pario {

class Copies {
 public:
  using Arrived = std::function<void(TransferPtr)>;

  struct Hooks {
    std::function<void(TransferPtr)> answer;
    Arrived arrived;  // runs a request as if it had just arrived
  };

  // Requests of `peers` go to the leaders of parts.
  Copies(Peers& peers, Hooks hooks) : peers_(peers), hooks_(std::move(hooks)) {}

  // Starts a Copy to the part `part`, whose data `data` reads. read_done() must be called with a
  // transfer that has `copy_to` when its Read has ended.
  void start(TransferPtr transfer, std::uint32_t part, DataRequests& data);
  void read_done(TransferPtr transfer);

 private:
  Peers& peers_;
  Hooks hooks_;
};

}  // namespace score::pario
