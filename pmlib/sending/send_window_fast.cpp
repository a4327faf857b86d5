// This file is the sending side of the fast path of a message. It handles a message that is alone
// in its queue and fits the window. It skips the search for the descriptor of a number, batches,
// the check for a wider window and the release of more than one message. The resulting state is
// that of enqueue() and on_control(): fast_path_test.cpp runs the same histories with and without
// it and compares whole contexts.
#include "pmlib/sending/send_window.hpp"

namespace score::pm {

bool SendWindow::send_fast(std::uint32_t rank, std::uint16_t descriptor) {
  PeerState& peer = state_.peer(rank);
  if (!state_.engine.is_plain_send(peer.send)) return false;
  queues_.append(rank, descriptor, 1);
  state_.clock.begin_turn();
  if (!frames_.send_fast(rank, state_.segment.descriptor(descriptor))) [[unlikely]] {
    ready_.insert(rank);
    return true;
  }
  acks_.on_sent(peer, rank);
  state_.engine.on_app_send(peer.send, state_.clock.refresh());
  armed_.insert(rank);
  ready_.erase(rank);
  return true;
}

void SendWindow::on_ack_fast(std::uint32_t rank, PeerState& peer) {
  state_.engine.on_plain_ack(peer.send, state_.clock.now());
  if (!queues_.free_only_message(rank)) [[unlikely]]
    release_acknowledged(rank);
}

}  // namespace score::pm
