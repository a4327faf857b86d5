// TrunkDevice combines several links to the same peers into one device (trunking). It spreads
// bursts over the links, restores the order of arriving frames, and stops using a link that loses
// everything for a while.
//
// The order follows only from the frames' own numbers and the number that the context stored last.
// The links are of any kind and independent of each other. The device trusts no frame and keeps no
// lasting state: it reads a frame before its checksum is verified. So a broken frame may cost time,
// but never breaks the order, which the go-back-N above ensures.
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

  // `links` holds 1 .. kMaxLinks devices; link i must reach a peer at Segment::link_address(i,
  // rank). Returns null and sets `error` to an errno on failure.
  static std::unique_ptr<TrunkDevice> make(const Segment& segment, Links links, int& error);
  ~TrunkDevice() override;
  TrunkDevice(const TrunkDevice&) = delete;
  TrunkDevice& operator=(const TrunkDevice&) = delete;

  // `to` is ignored: each link has its own address for the frames' destination.
  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override;
  std::size_t receive(FrameSink& sink, std::size_t limit) override;

  // The descriptor becomes readable when any link does.
  int poll_fd() const override { return epoll_fd_; }

  // Passes on all frames that were held back for a missing one.
  bool prepare_to_sleep() override;

  std::size_t batch_frames() const override { return batch_frames_; }

  bool wants_joined() const override { return wants_joined_; }

  std::uint32_t dropped() const override;

  std::size_t frame_bytes() const override { return frame_bytes_; }

  // Returns true if link `index` is used now.
  bool is_up(std::size_t index) const { return links_[index].rests == 0; }

 private:
  static constexpr std::uint32_t kFirstRest = 64;  // bursts

  struct Link {
    std::unique_ptr<PacketDevice> device;
    std::int32_t weight = 1;  // its share of the bursts, relative to the other links
    std::int32_t due = 0;     // grows by the weight with each burst; the link with most is next
    std::uint32_t consecutive_losses = 0;
    std::uint32_t rests = 0;  // bursts that it is left out of; 0 = up
    std::uint32_t next_rest = kFirstRest;
  };

  // A Burst is a run of recently sent frames; it shows which link lost one.
  struct Burst {
    std::uint32_t rank = 0;
    std::uint32_t first = 0, last = 0;  // numbers
    std::uint16_t link = 0;
    bool is_open = false;  // neither acknowledged nor resent yet
  };

  // An Early is a frame that arrived before one with a lower number.
  struct Early {
    std::uint32_t source = 0;
    std::uint32_t sequence = 0;
    std::uint32_t length = 0;  // bytes; 0 = entry not used
  };

  class Sorter;

  TrunkDevice(const Segment& segment, Links links);
  int watch_links();
  std::size_t pick_link(const FrameHeader& first, std::size_t count);
  std::size_t send_by_all(std::uint32_t rank, std::span<const FrameOut> frames);
  std::size_t up_from(std::size_t index) const;
  std::size_t most_due();
  void record_loss(std::uint32_t rank, std::uint32_t number);
  void record_success(std::uint32_t rank, std::uint32_t acknowledged);
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
  std::size_t receive_turn_ = 0;  // link polled first
  std::size_t batch_frames_ = 1;
  bool wants_joined_ = true;
  std::size_t frame_bytes_ = 0;
  int epoll_fd_ = -1;
  std::array<Burst, 64> bursts_{};
  std::uint32_t burst_turn_ = 0;
  std::vector<std::uint32_t> highest_sent_;
  std::vector<Early> early_;  // one window of entries, for all sources
  std::vector<std::byte> early_bytes_;
  std::uint32_t kept_ = 0;         // frames in early_
  std::uint32_t empty_turns_ = 0;  // of receive() since a frame was kept
  std::uint32_t duplicates_ = 0;   // since the last new frame
  bool must_flush_ = false;
};

}  // namespace score::pm
