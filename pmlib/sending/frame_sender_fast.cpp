// This file makes the header on the fast path of a message: it writes the header in front of the
// payload in the buffer and offers the frame alone. It skips tags, joined batches, Voids and
// payloads in user memory. The bytes are those that send_frames() makes; fast_path_test.cpp
// compares both paths.
#include "pmlib/sending/frame_sender.hpp"
#include "pmlib/wire/fast_header.hpp"

namespace score::pm {

bool FrameSender::send_fast(std::uint32_t rank, const SendDescriptor& d) {
  const PeerState& peer = state_.peer(rank);
  Alias self{identity_.key, identity_.rank};
  std::uint32_t destination = rank;
  if (!aliases_.empty()) self = aliases_[rank], destination = 0;
  std::byte* at = state_.segment.send_buffer(d.buffer);
  put_words(at, first_word(identity_.channel, d.length), self.key,
            words_of(identity_.generation, self.source), words_of(destination, d.first),
            std::uint64_t{peer.receive.recv});
  put_crc(at, d.payload_crc);
  batch_[0] = {{at, sizeof(FrameHeader) + d.length}, {}};
  if (device_.send(peer.address, {batch_.data(), 1}) == 0) [[unlikely]]
    return false;
  ++state_.counters().frames_sent;
  return true;
}

}  // namespace score::pm
