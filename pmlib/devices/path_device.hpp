// PathDevice runs over paths that may carry smaller frames than this host's own link. It finds the
// size that passes to each peer (PathSize) and splits larger frames into pieces, which the other
// end reassembles.
//
// The go-back-N above does not notice this: a frame keeps its number and its length for any path,
// so a path may change while a window is in flight. If a piece is lost, its frame is lost. The
// device is used only where frames may be larger than the size that passes everywhere.
#pragma once

#include "pmlib/core/packet_device.hpp"
#include "pmlib/devices/path_size.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace score::pm {

class PathDevice final : public PacketDevice {
 public:
  using Now = std::function<Microseconds()>;

  // `inner` must reach a peer at Segment::link_address(link, rank). Both ends must use a
  // PathDevice.
  PathDevice(const Segment& segment, std::unique_ptr<PacketDevice> inner, std::size_t link,
             Now now);

  // The frames' own destination determines the path, because both ends share one numbering of
  // ranks.
  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override;
  std::size_t receive(FrameSink& sink, std::size_t limit) override;

  int poll_fd() const override { return inner_->poll_fd(); }

  bool prepare_to_sleep() override { return inner_->prepare_to_sleep(); }

  bool reports_refusals() const override { return inner_->reports_refusals(); }

  std::size_t batch_frames() const override { return inner_->batch_frames(); }

  bool wants_joined() const override { return inner_->wants_joined(); }

  std::uint32_t dropped() const override { return inner_->dropped(); }

  std::size_t frame_bytes() const override { return inner_->frame_bytes(); }

  // Returns the largest size of a frame that is sent whole to `rank`.
  std::size_t limit(std::uint32_t rank) const { return paths_[rank].size.limit(); }

 private:
  struct Path {
    PathSize size;
    std::uint32_t highest = 0;    // highest number sent
    std::uint32_t acked = 0;      // last acknowledgement of the peer
    std::uint32_t suspicion = 0;  // batches with large frames resent since then
    bool is_wanted = false;       // a frame was larger than the limit
    bool is_refused = false;      // the link refuses large frames
    Microseconds refused_at = 0;  // time of the first refusal
  };

  // A Reassembly is a frame that arrives in pieces.
  struct Reassembly {
    std::uint32_t source = 0, number = 0;
    std::uint32_t total = 0;    // bytes of the frame; 0 = entry not used
    std::uint32_t pieces = 0;   // in total
    std::uint64_t missing = 0;  // one bit per piece
  };

  class Sorter;

  bool watch(Path& path, const FrameHeader& first, std::span<const FrameOut> frames) const;
  void note_refusal(Path& path, std::size_t bytes) const;
  bool send_pieces(const PeerAddress& to, const FrameOut& frame, std::size_t limit);
  void probe(std::uint32_t rank);
  void send_note(std::uint32_t rank, FrameKind kind, std::uint32_t number, std::size_t bytes);
  void seal_note(FrameHeader& h, std::span<const std::byte> payload) const;
  bool take(FrameSink& sink, std::span<const std::byte> frame);
  void add_piece(FrameSink& sink, const FrameHeader& h, std::span<const std::byte> payload);
  Reassembly& puzzle_for(const FrameHeader& h);

  Segment segment_;
  std::unique_ptr<PacketDevice> inner_;
  std::size_t link_;
  Now now_;
  std::vector<Path> paths_;         // by rank
  std::vector<std::byte> scratch_;  // pieces, or a probe, to be sent
  std::vector<Reassembly> puzzles_;
  std::vector<std::byte> puzzle_bytes_;
  std::size_t puzzle_turn_ = 0;
  std::uint32_t piece_number_ = 0;
  unsigned turns_ = 0;
  std::uint32_t next_probed_ = 0;
};

}  // namespace score::pm
