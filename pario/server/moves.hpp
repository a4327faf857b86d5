// Implements renames between servers. The server of the new entry creates it and notes the old one
// in the same commit. It then ensures that the old one is removed, even if the client or this
// server ends in the meantime.
#pragma once

#include "pario/server/io/peers.hpp"
#include "pario/server/metadata.hpp"

#include <functional>
#include <vector>

namespace score::pario {

class Moves {
 public:
  using Finish = std::function<void(TransferPtr)>;

  // `finish` receives each transfer with its answer.
  Moves(Store& store, Peers& peers, std::uint32_t servers, Finish finish)
      : store_(store), peers_(peers), servers_(servers), finish_(std::move(finish)) {}

  // Resumes the moves that were not finished. Returns an errno value.
  int open();
  // Handles a Move that metadata has carried out.
  void run(TransferPtr transfer);
  // Call this when the store is committed, or when the commit failed and no entry was created.
  void committed(int error);
  // Call this once per second.
  void tick();

 private:
  struct Pending {
    Store::Move move;
    std::shared_ptr<TransferPtr> transfer;  // null: no client waits
    std::int64_t since_ms = 0;              // start of the client's wait
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
