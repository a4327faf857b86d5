// Renames between servers. The server of the new entry makes it, notes the old one in the same
// commit, and sees to it that the old one goes, also if the client or this server ends meanwhile.
#pragma once

#include "pario/server/metadata.hpp"
#include "pario/server/peers.hpp"

#include <functional>
#include <vector>

namespace score::pario {

class Moves {
 public:
  using Finish = std::function<void(TransferPtr)>;

  // `finish` gets each transfer with its answer.
  Moves(Store& store, Peers& peers, std::uint32_t servers, Finish finish)
      : store_(store), peers_(peers), servers_(servers), finish_(std::move(finish)) {}

  // Errno value. Those that were not finished are finished now.
  int open();
  // A Move that metadata has carried out.
  void run(TransferPtr transfer);
  // The store is committed, or it failed and nothing was made.
  void committed(int error);
  // Once per second.
  void tick();

 private:
  struct Pending {
    Store::Move move;
    std::shared_ptr<TransferPtr> transfer;  // null: the client is not waiting
    std::int64_t since_ms = 0;              // the client waits
  };

  void ask(const Pending& pending);
  void finished(const Pending& pending, int error);

  Store& store_;
  Peers& peers_;
  std::uint32_t servers_;
  Finish finish_;
  std::vector<Pending> made_;    // in this turn
  std::vector<Pending> failed_;  // the server of the old entry could not be reached
};

}  // namespace score::pario
