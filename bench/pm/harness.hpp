// Runs the two ends of a measurement in two processes, each on its own processor and, for network
// devices, in its own network namespace; the namespaces are joined by a veth pair.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace score::bench {

// What both ends and the parent see. Zero at the start of each run.
struct Shared {
  std::atomic<std::uint32_t> arrived;  // for meet()
  std::atomic<std::uint32_t> finished;
  double seconds;  // what a side measured
  std::uint64_t amount;
  char failure[160];
  alignas(64) std::atomic<std::uint64_t> flag[2][8];  // one cache line each
  std::uint64_t address[2];                           // of memory that the other end writes into
  std::int32_t pid[2];
  std::uint64_t dropped;                  // frames that rank 1 did not believe
  std::array<std::uint64_t, 8> count[2];  // what a test counts
  std::uint8_t note[64];
  alignas(64) std::uint8_t area[2][1 << 23];
};

// Percent of the frames, each way.
struct Spoil {
  double lose = 0;
  double damage = 0;  // four bytes are overwritten; nothing below PM notices
  double duplicate = 0;
};

// One end: 0 or 1. Reports through Shared; throws to fail the run.
using Side = std::function<void(int side, Shared& shared)>;

class TwoEnds {
 public:
  // `with_network`: make the namespaces (needs root).
  explicit TwoEnds(bool with_network);
  ~TwoEnds();
  TwoEnds(const TwoEnds&) = delete;
  TwoEnds& operator=(const TwoEnds&) = delete;

  // Runs both ends and waits for them. Throws with the reason if one fails or takes too long.
  Shared& run(const Side& side);

  const Shared& shared() const { return *shared_; }

  // Moves the calling process into the namespace of `side`.
  void enter(int side) const;

  // Of the namespace of `side`; "127.0.0.1" without network.
  std::string address(int side) const;
  std::string mac(int side) const;
  static constexpr const char* kInterface = "pm0";
  // nftables draws lots for `percent` of what the link carries and loses it, or lets it pass all
  // the same: what drawing lots costs. 0 takes the filter away.
  void lose(double percent, bool passes = false);
  // A link that is worse, for single frames. False and why if nftables cannot do it here.
  bool spoil(const Spoil& spoil, std::string& reason);
  // From now on the link carries single frames: bursts are cut before.
  void cut_bursts();
  // Puts a bridge of a third namespace between the ends, whose own links carry 9000 bytes then. The
  // bridge silently drops frames longer than `mtu`.
  void put_bridge(unsigned mtu);
  void set_bridge_mtu(unsigned mtu);

 private:
  void make_namespaces();
  static int hold_namespace();
  static std::string inside_of(int holder);
  std::string inside(int side) const;
  void configure(int side);

  bool with_network_;
  Shared* shared_ = nullptr;
  int holders_[2] = {-1, -1};  // processes that keep the namespaces
  int bridge_holder_ = -1;
  std::string macs_[2];
};

// Both ends wait for each other.
void meet(Shared& shared, std::uint32_t times);

double now_seconds();

struct Spread {
  double median = 0, low = 0, high = 0;  // of the rounds
};

Spread spread_of(std::vector<double> values);

}  // namespace score::bench
