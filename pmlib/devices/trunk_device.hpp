// Several links to the same peers as one device (trunking): bursts are spread over the links, what
// arrives is put in order again, and a link that loses everything is left out for a while.
//
// The frames' own numbers are all there is to order by, beside the number that the context stored
// last: the links are of any kind and know nothing of each other. Nothing here is trusted and
// nothing is lasting: a frame is looked at before its checksum is, so a broken one may cost time,
// never order, which is the go-back-N's business above.
#pragma once

#include "pmlib/core/packet_device.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace score::pm {

class TrunkDevice final : public PacketDevice {
 public:
  using Links = std::vector<std::unique_ptr<PacketDevice>>;

  // `links` holds 1 .. kMaxLinks devices; link i reaches a peer at Segment::link_address(i, rank).
  // Null and an errno in `error` on failure.
  static std::unique_ptr<TrunkDevice> make(const Segment& segment, Links links, int& error);
  ~TrunkDevice() override;
  TrunkDevice(const TrunkDevice&) = delete;
  TrunkDevice& operator=(const TrunkDevice&) = delete;

  // `to` is ignored: each link has an address of its own for the frames' destination.
  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override;
  std::size_t receive(FrameSink& sink, std::size_t limit) override;

  // Becomes readable when any link does.
  int poll_fd() const override { return epoll_fd_; }

  // Frames kept back for one that is missing are handed on first.
  bool prepare_to_sleep() override;

  std::size_t batch_frames() const override { return batch_frames_; }

  bool wants_joined() const override { return wants_joined_; }

  std::uint32_t dropped() const override;

  std::size_t frame_bytes() const override { return frame_bytes_; }

  // Whether link `index` is used now.
  bool is_up(std::size_t index) const { return links_[index].rests == 0; }

 private:
  static constexpr std::uint32_t kFirstRest = 64;  // bursts

  struct Link {
    std::unique_ptr<PacketDevice> device;
    std::int32_t weight = 1;  // the part of the bursts it gets, beside the others
    std::int32_t due = 0;     // grows by the weight with each burst; the link with most is next
    std::uint32_t blame = 0;  // losses in a row
    std::uint32_t rests = 0;  // bursts it is left out of; 0 = up
    std::uint32_t next_rest = kFirstRest;
  };

  // Frames sent lately: shows which link lost one.
  struct Burst {
    std::uint32_t rank = 0;
    std::uint32_t first = 0, last = 0;  // numbers
    std::uint16_t link = 0;
    bool is_open = false;  // neither acknowledged nor resent yet
  };

  // A frame that came before one with a lower number.
  struct Early {
    std::uint32_t source = 0;
    std::uint32_t sequence = 0;
    std::uint32_t length = 0;  // bytes; 0 = place not used
  };

  class Sorter;

  TrunkDevice(const Segment& segment, Links links);
  int watch_links();
  std::size_t pick_link(const FrameHeader& first, std::size_t count);
  std::size_t send_by_all(std::uint32_t rank, std::span<const FrameOut> frames);
  std::size_t up_from(std::size_t index) const;
  std::size_t most_due();
  void blame_for(std::uint32_t rank, std::uint32_t number);
  void praise_for(std::uint32_t rank, std::uint32_t acknowledged);
  void hand_on(FrameSink& sink, std::span<const std::byte> frame);
  bool keep(const FrameHeader& h, std::span<const std::byte> frame);
  bool is_ours(const FrameHeader& h) const;
  std::int32_t ahead_of(std::uint32_t source, std::uint32_t sequence) const;
  void hand_on_kept(FrameSink& sink, std::uint32_t source);
  void hand_on_oldest(FrameSink& sink);
  void release(FrameSink& sink, std::size_t place);
  void note_duplicate();

  Segment segment_;
  std::vector<Link> links_;
  std::size_t all_rest_ = 0;      // bursts sent while every link rested
  std::size_t single_ = 0;        // link of single frames
  std::size_t receive_turn_ = 0;  // link looked at first
  std::size_t batch_frames_ = 1;
  bool wants_joined_ = true;
  std::size_t frame_bytes_ = 0;
  int epoll_fd_ = -1;
  std::array<Burst, 64> bursts_{};
  std::uint32_t burst_turn_ = 0;
  std::vector<std::uint32_t> highest_sent_;
  std::vector<Early> early_;  // as many as a window, for all sources
  std::vector<std::byte> early_bytes_;
  std::uint32_t kept_ = 0;         // frames in early_
  std::uint32_t empty_turns_ = 0;  // of receive() since one was kept
  std::uint32_t duplicates_ = 0;   // since the last new frame
  bool must_flush_ = false;
};

}  // namespace score::pm
