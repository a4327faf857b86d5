// Sends requests at once if PM has a buffer, otherwise in the order of submission when it has one
// again.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/fi/link/requests.hpp"
#include "pmlib/fi/link/silence.hpp"
#include "pmlib/fi/link/wait_set.hpp"
#include "pmlib/fi/link/wire.hpp"
#include "pmlib/fi/peers/peers.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <sys/uio.h>
#include <vector>

namespace score::pm::fi {

// Messages up to this length are sent without asking, if three quarters of the send buffers hold
// them: with an MTU of 1500 those hold 66 KB, so 64 KB go unasked. Chosen; measured over UDP with
// an MTU of 9000, where asking takes 1.1 times as long for 128 KB and 1.2 times for 64.
constexpr std::size_t kEagerBytes = 128 << 10;
// Over Ethernet, where each frame is sent by itself, a message without asking has at most this many
// frames.
constexpr std::size_t kEagerFrames = 24;
// Over UDP, messages up to kUnaskedBytes go out of the sender's own memory without asking. Those
// from kUncopiedBytes on do so if they are to be answered anyway, which saves a copy. At most
// kMostUnasked bytes of them may be unanswered per peer, because the receiver has to keep a message
// until a receive is posted. The values were measured.
constexpr std::size_t kUncopiedBytes = 16 << 10;
constexpr std::size_t kUnaskedBytes = 512 << 10;
constexpr std::size_t kMostUnasked = 1 << 20;

// The link learns here that PM has reported the death of a peer.
class DeathListener {
 public:
  virtual void on_death(std::uint32_t peer) = 0;

 protected:
  ~DeathListener() = default;
};

// The parts of a link that a sender uses.
struct SenderParts {
  pm::Endpoint& pm;
  const Peers& peers;
  WaitSet& wait_set;
  Silence& silence;
  Requests& requests;
  DeathListener& listener;
};

class Sender {
 public:
  explicit Sender(const SenderParts& parts);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Sends head and pieces at once. Returns false if that is not possible now; the caller then makes
  // a LinkRequest.
  bool try_send(std::uint32_t peer, std::span<const std::byte> head, std::span<const iovec> pieces,
                std::size_t length);
  // Lends memory for a message of `bytes`, which send_lent() must send before anything else is
  // sent. Returns null if no message can be sent at once.
  std::byte* lend(std::uint32_t peer, std::size_t bytes);
  // Returns false if the message was not sent; the memory is given back in that case as well.
  bool send_lent();
  // Sends a request that needs no answer at once; its pieces are not used afterwards. Returns false
  // if a part could not be sent: the caller must then submit() it.
  bool send_at_once(LinkRequest& request);
  // Sends `request` as soon as possible. If `id` is 0, it ends when PM has accepted all of it.
  void submit(std::unique_ptr<LinkRequest> request);
  // Sends a head alone, now or later.
  void send_head(std::uint32_t peer, const MessageHead& head);
  void send_done(PortName to, std::uint32_t request, int error);

  // Returns the length of the longest message that is worth copying.
  std::size_t eager_bytes(std::uint32_t peer) const;
  // Returns true if a message that is to be answered may go at once out of one piece of its own
  // memory.
  bool may_go_unasked(std::uint32_t peer, std::size_t length) const;

  bool has_queued() const { return !waiting_peers_.empty(); }

  // Sends what can be sent now. Returns true if the queue of a peer has become empty.
  bool send_queued();

  bool is_dead(std::uint32_t peer) const { return queues_[peer].is_dead; }

  // Ends a queued request of which nothing has been sent, if it is_cancellable(), with ECANCELED.
  // Returns false if there is none.
  bool cancel(const void* endpoint, const void* context);

  // Ends the requests to a peer that has died. Returns false if this was done before.
  bool fail(std::uint32_t peer);

 private:
  struct Queue {
    std::list<LinkRequest*> requests;
    bool is_waiting = false;  // is in waiting_peers_
    bool is_dead = false;
  };

  // Notes that this process sends: its threads then do not poll in vain.
  void note_sending() {
    parts_.wait_set.wake_sleepers();
    parts_.silence.end();
  }

  bool is_open(std::uint32_t peer) const {
    return !queues_[peer].is_waiting && !queues_[peer].is_dead && parts_.peers.is_ready(peer);
  }

  // Both return 0 once PM has accepted all of the request, otherwise the errors of pm::Endpoint.
  int push(LinkRequest& request);
  int push_parts(LinkRequest& request);
  void flush(std::uint32_t peer);

  SenderParts parts_;
  std::vector<Queue> queues_;  // one per peer
  std::vector<std::uint32_t> waiting_peers_;
};

}  // namespace score::pm::fi
