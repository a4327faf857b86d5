// Introduces peers one by one, for processes that no scored introduces to each other.
//
// Each process has a random key and numbers its peers as it meets them. Before two processes
// exchange frames, each sends the other the number that it has given to it. HELLO contains the
// sender's name and that number; the receiver answers with WELCOME. Any process that knows a name
// may send HELLO; the receiver drops a HELLO without the right key. Both messages may be lost, so
// they are repeated until the other side is known.
//
// A Directory lies between a channel and its UDP device and takes HELLO and WELCOME out of the
// frames.
#pragma once

#include "pmlib/core/packet_device.hpp"
#include "pmlib/devices/udp_device.hpp"
#include "pmlib/fi/peers/name.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace score::pm::fi {

class Directory final : public PacketDevice, private FrameSink {
 public:
  // The directory calls these when it can reach peer `index`: at `address`, under `key` and as
  // number `own_index`.
  class Listener {
   public:
    virtual void on_known(std::uint32_t index, std::uint64_t key, std::uint32_t own_index) = 0;
    virtual void on_address(std::uint32_t index, const PeerAddress& address) = 0;

   protected:
    ~Listener() = default;
  };

  // `capacity` is the maximum number of peers, including own index 0.
  Directory(std::unique_ptr<UdpDevice> device, const Name& own, std::uint32_t capacity);

  void set_listener(Listener& listener) { listener_ = &listener; }

  // Returns the index of a process, a new one if its key is new. A known process keeps its first
  // address. Returns 0 if the table is full, and for the own name; see is_own().
  std::uint32_t find_or_add(const Name& name);

  // `index` must come from find_or_add().
  const Name& name_of(std::uint32_t index) const { return peers_[index].name; }

  bool is_own(const Name& name) const { return name.key == own_.key; }

  // Returns true if the numbers have been exchanged, so that frames can be sent.
  bool is_ready(std::uint32_t index) const {
    return index == 0 || (index < peers_.size() && peers_[index].is_ready);
  }

  // Repeats HELLO to each peer for which it is due.
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
  void send_hello(std::uint32_t index, bool is_welcome);

  std::unique_ptr<UdpDevice> device_;
  Name own_;
  std::uint32_t capacity_;
  std::vector<Peer> peers_;
  std::size_t unready_ = 0;
  FrameSink* sink_ = nullptr;
  Listener* listener_ = nullptr;
};

}  // namespace score::pm::fi
