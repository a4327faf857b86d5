// The requests of a link that have not ended: they are to be sent or wait for an answer.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/fi/link/dropped_regions.hpp"
#include "pmlib/fi/link/id_table.hpp"
#include "pmlib/fi/link/wire.hpp"
#include "pmlib/fi/peers/peers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <sys/uio.h>
#include <vector>

namespace score::pm::fi {

// A request is to be sent or waits for an answer. The link owns it from add() until it ends.
struct LinkRequest {
  virtual ~LinkRequest() = default;

  // The link calls this once, at the end, and then deletes the request. `error` is an errno or 0.
  virtual void finish(int error) = 0;

  // Returns true if the application started it on this endpoint with this context, and it may be
  // cancelled.
  [[nodiscard]] virtual bool is_cancellable(const void* /*endpoint*/,
                                            const void* /*context*/) const {
    return false;
  }

  // Returns true if all of the request has left and its memory is not used any more; only its
  // answer is missing.
  [[nodiscard]] bool awaits_answer() const {
    return id != 0 && !is_queued && !is_moving && operation == 0 && large.empty();
  }

  // Takes the answer to a Read or Atomic; the bytes are valid during the call.
  virtual void take_reply(std::span<const std::byte>) {}

  void set_head(const MessageHead& from) {
    head = from.bytes;
    head_bytes = from.size;
  }

  // Memory of an announced message.
  std::span<const std::byte> large;

  PortName to;
  std::uint32_t id = 0;       // 0: no answer is expected
  std::uint32_t inbound = 0;  // the transfer that ends a large Read
  // These bytes are still to be sent: the head, then the pieces.
  std::array<std::byte, kMaxHead> head{};
  std::size_t head_bytes = 0;
  std::vector<iovec> pieces;
  std::size_t length = 0;  // bytes in the pieces
  std::size_t sent = 0;
  std::unique_ptr<std::byte[]> copy;  // if `pieces` or `large` lie here
  std::size_t copied = 0;             // bytes in `copy`
  bool is_queued = false;
  bool is_moving = false;  // the announced memory is being written
  // For a message that goes unasked out of its own memory: the bytes behind its first part.
  std::size_t unasked = 0;
  bool has_region = false;
  std::uint32_t region = 0;
  OperationId operation = 0;
};

class Requests {
 public:
  Requests(pm::Endpoint& pm, DroppedRegions& regions)
      : pm_(pm), regions_(regions), unasked_(pm.size()) {}

  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  // Gives the request an id, to be named by the peer.
  std::uint32_t enter(LinkRequest& request);
  // Owns a request until end(). Without an id, only its queue knows it.
  LinkRequest* add(std::unique_ptr<LinkRequest> request);
  void end(LinkRequest* request, int error);
  // Ends the request with this id, if there is one.
  void end(std::uint32_t id, int error);
  // Ends a request that is_cancellable() and awaits_answer() with ECANCELED. An answer that arrives
  // later is ignored. Returns false if there is none.
  bool cancel(const void* endpoint, const void* context);
  // Ends the requests with an id to a peer that has died.
  void fail(std::uint32_t peer);

  // Returns null if no request has this id, or if it is not ready for an answer of `from`.
  LinkRequest* find_asked(std::uint64_t id, std::uint32_t from);

  struct Waiting {
    std::size_t requests = 0;
    std::size_t bytes = 0;  // that they keep a copy of
  };

  const Waiting& waiting() const { return waiting_; }

  // Returns the bytes that have gone to the peer without asking, and are not answered.
  std::size_t unasked_bytes(std::uint32_t peer) const { return unasked_[peer]; }

 private:
  pm::Endpoint& pm_;
  DroppedRegions& regions_;
  IdTable<LinkRequest*> entered_;
  Waiting waiting_;
  std::vector<std::size_t> unasked_;  // per peer
};

}  // namespace score::pm::fi
