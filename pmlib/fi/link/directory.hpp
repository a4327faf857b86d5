// Peers that become known one by one, for processes that no scored introduces to each other.
//
// Each process has a random key and numbers its peers as it meets them. Before two exchange frames
// each sends the other its number there: HELLO with one's own name and the number one has given the
// other, answered by WELCOME. Any process that knows a name may say HELLO; a HELLO without the
// right key is dropped. Both are repeated until the other side is known, so they may get lost.
//
// Sits between a channel and its UDP device and takes HELLO and WELCOME out of the frames.
#pragma once

#include "pmlib/core/packet_device.hpp"
#include "pmlib/devices/udp_device.hpp"
#include "pmlib/fi/link/name.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace score::pm::fi {

class Directory final : public PacketDevice, private FrameSink {
 public:
  // Called when `index` is reached at `address`, under `key` and as number `own_index`.
  class Listener {
   public:
    virtual void on_known(std::uint32_t index, std::uint64_t key, std::uint32_t own_index) = 0;
    virtual void on_address(std::uint32_t index, const PeerAddress& address) = 0;

   protected:
    ~Listener() = default;
  };

  // `capacity`: peers at most, own index 0 among them.
  Directory(std::unique_ptr<UdpDevice> device, const Name& own, std::uint32_t capacity);

  void set_listener(Listener& listener) { listener_ = &listener; }

  // The index of a process, a new one if its key is new: a process that is known keeps the address
  // it was first known by. 0: the table is full. Own name: 0 too, see is_own().
  std::uint32_t find_or_add(const Name& name);

  // `index` is one that find_or_add() has returned.
  const Name& name_of(std::uint32_t index) const { return peers_[index].name; }

  bool is_own(const Name& name) const { return name.key == own_.key; }

  // Numbers are exchanged: frames can be sent.
  bool is_ready(std::uint32_t index) const {
    return index == 0 || (index < peers_.size() && peers_[index].is_ready);
  }

  // Says HELLO again where that is due.
  void tick(std::uint64_t now_us);

  bool has_unready() const { return unready_ > 0; }

  // --- PacketDevice
  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override {
    return device_->send(to, frames);
  }

  std::size_t receive(FrameSink& sink, std::size_t limit) override {
    sink_ = &sink;
    return device_->receive(*this, limit);
  }

  int poll_fd() const override { return device_->poll_fd(); }

  std::size_t batch_frames() const override { return device_->batch_frames(); }

  bool wants_joined() const override { return device_->wants_joined(); }

  std::uint32_t dropped() const override { return device_->dropped(); }

  std::size_t frame_bytes() const override { return device_->frame_bytes(); }

 private:
  struct Peer {
    Name name;
    bool is_ready = false;
    std::uint64_t due_us = 0;
    std::uint64_t pause_us = 0;
  };

  void on_frame(std::span<const std::byte> frame) override;
  void on_hello(std::span<const std::byte> frame);
  void say(std::uint32_t index, bool is_welcome);

  std::unique_ptr<UdpDevice> device_;
  Name own_;
  std::uint32_t capacity_;
  std::vector<Peer> peers_;
  std::size_t unready_ = 0;
  FrameSink* sink_ = nullptr;
  Listener* listener_ = nullptr;
};

}  // namespace score::pm::fi
