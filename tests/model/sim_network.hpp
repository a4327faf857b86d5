// Simulates a network of N endpoints in one thread and in virtual time: the shipped channel runs
// over a device that loses, duplicates, delays, reorders and damages frames by a seeded generator.
#pragma once

#include "pmlib/channel/channel.hpp"
#include "pmlib/core/packet_device.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <vector>

namespace score::pm::model {

using Random = std::mt19937_64;

struct Faults {
  double lose = 0;
  double duplicate = 0;
  double corrupt = 0;  // a few bits flipped, which the network's own checksum does not detect
  double delay = 0;    // chance that a frame is overtaken by later ones
  double refuse = 0;   // chance that the device takes only part of a batch
};

class SimNetwork {
 public:
  SimNetwork(Random& random, Faults faults) : random_(random), faults_(faults) {}

  static constexpr std::uint64_t kStart = 1'000'000;
  std::uint64_t now = kStart;  // the ranks see its low 32 bits, which wrap

  void set_faults(Faults faults) { faults_ = faults; }

  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }

  void send(std::uint32_t to, const FrameOut& frame) {
    std::vector<std::byte> bytes;
    bytes.reserve(frame.size());
    bytes.insert(bytes.end(), frame.head.begin(), frame.head.end());
    bytes.insert(bytes.end(), frame.body.begin(), frame.body.end());
    ++frames;
    if (chance(faults_.lose)) return;
    if (chance(faults_.duplicate)) put(to, bytes);
    if (chance(faults_.corrupt)) damage(bytes);
    put(to, std::move(bytes));
  }

  // Delivers frames for `to` that have arrived by now, at most `limit`.
  std::size_t deliver(std::uint32_t to, FrameSink& sink, std::size_t limit) {
    std::size_t count = 0;
    auto& queue = in_flight_[to];
    while (count < limit && !queue.empty() && queue.begin()->first <= now) {
      const std::vector<std::byte> frame = std::move(queue.begin()->second);
      queue.erase(queue.begin());
      sink.on_frame(frame);
      ++count;
    }
    return count;
  }

  bool refuses() { return faults_.refuse > 0 && chance(faults_.refuse); }

  std::uint64_t frames = 0;

 private:
  void put(std::uint32_t to, std::vector<std::byte> bytes) {
    std::uint64_t at = now + 5 + random_() % 10;
    if (chance(faults_.delay)) at += random_() % 400;
    in_flight_[to].emplace(at, std::move(bytes));
  }

  void damage(std::vector<std::byte>& bytes) {
    for (std::uint64_t flips = 1 + random_() % 3; flips > 0; --flips) {
      bytes[random_() % bytes.size()] ^= std::byte{static_cast<std::uint8_t>(1u << random_() % 8)};
    }
  }

  Random& random_;
  Faults faults_;
  std::map<std::uint32_t, std::multimap<std::uint64_t, std::vector<std::byte>>> in_flight_;
};

// Represents one endpoint's view of the network. A peer's address is its rank.
class SimDevice final : public PacketDevice {
 public:
  SimDevice(SimNetwork& network, std::uint32_t rank, std::size_t frame_bytes)
      : network_(network), rank_(rank), frame_bytes_(frame_bytes) {}

  static PeerAddress address_of(std::uint32_t rank) {
    PeerAddress address;
    std::memcpy(address.bytes.data(), &rank, sizeof rank);
    return address;
  }

  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override {
    std::uint32_t rank = 0;
    std::memcpy(&rank, to.bytes.data(), sizeof rank);
    std::size_t taken = 0;
    for (const FrameOut& frame : frames) {
      if (network_.refuses()) break;
      network_.send(rank, frame);
      ++taken;
    }
    return taken;
  }

  std::size_t receive(FrameSink& sink, std::size_t limit) override {
    return network_.deliver(rank_, sink, limit);
  }

  int poll_fd() const override { return -1; }

  std::size_t frame_bytes() const override { return frame_bytes_; }

 private:
  SimNetwork& network_;
  std::uint32_t rank_;
  std::size_t frame_bytes_;
};

// Owns memory for a segment, aligned and zero.
class SegmentMemory {
 public:
  explicit SegmentMemory(std::size_t bytes)
      : bytes_(bytes),
        memory_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}))) {
    std::memset(memory_, 0, bytes_);
  }

  ~SegmentMemory() { ::operator delete (memory_, std::align_val_t{64}); }

  SegmentMemory(const SegmentMemory&) = delete;
  SegmentMemory& operator=(const SegmentMemory&) = delete;

  std::byte* data() { return memory_; }

  std::size_t size() const { return bytes_; }

  std::span<std::byte> span() { return {memory_, bytes_}; }

 private:
  std::size_t bytes_;
  std::byte* memory_;
};

}  // namespace score::pm::model
