// Moves data between the memory of transfers and the registered memory of a client.
#pragma once

#include "pario/server/io/transfer.hpp"
#include "pmlib/endpoint/endpoint.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>
#include <vector>

namespace score::pario {

class RemoteMoves {
 public:
  struct Finished {
    TransferPtr transfer;  // null: none has finished
    int error = 0;         // errno
  };

  // `endpoint` must outlive this object until close().
  explicit RemoteMoves(pm::Endpoint& endpoint) : endpoint_(endpoint) {}

  // Moves the first `length` bytes: from the client for a write, to it for a read.
  void start(TransferPtr transfer, std::uint64_t length);
  // Finishes completed operations and starts more. Returns true if there were any.
  bool advance();
  // Takes a transfer whose data is in place, or has failed, out of this object.
  Finished take_finished();
  // Gives up all moves and returns their transfers; PM does not use their memory any more.
  std::vector<TransferPtr> close();

  // Returns the bytes that were moved since the last call.
  std::uint64_t take_moved_bytes() { return std::exchange(moved_bytes_, 0); }

  bool is_empty() const { return moves_.empty(); }

  // Returns true if an operation waits for room in the endpoint.
  bool needs_room() const;

 private:
  // Describes data in flight between a transfer's memory and the client's.
  struct Move {
    struct Part {
      std::uint64_t here = 0;
      std::uint64_t there = 0;
      std::uint64_t length = 0;
    };

    bool has_more() const { return error == 0 && next < parts.size(); }

    TransferPtr transfer;
    std::vector<Part> parts;
    std::size_t next = 0;
    std::vector<pm::OperationId> open;
    std::uint32_t region = 0;
    std::uint64_t offset = 0;
    int error = 0;
    bool is_registered = false;
  };

  bool advance(Move& move);
  bool start_parts(Move& move);

  pm::Endpoint& endpoint_;
  std::list<Move> moves_;
  std::uint64_t moved_bytes_ = 0;
};

}  // namespace score::pario
