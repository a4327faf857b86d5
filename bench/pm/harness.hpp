// Runs the two ends of a measurement in two processes, each on its own processor and, for network
// devices, in its own network namespace. A veth pair connects the namespaces.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace score::bench {

// Holds the memory that both ends and the parent share. It is zero at the start of each run.
struct Shared {
  std::atomic<std::uint32_t> arrived;  // for meet()
  std::atomic<std::uint32_t> finished;
  double seconds;  // measured by a side
  std::uint64_t amount;
  char failure[160];
  alignas(64) std::atomic<std::uint64_t> flag[2][8];  // one cache line each
  std::uint64_t address[2];                           // memory that the other end writes into
  std::int32_t pid[2];
  std::uint64_t dropped;                  // frames that rank 1 rejected
  std::array<std::uint64_t, 8> count[2];  // counters of a test
  std::uint8_t note[64];
  alignas(64) std::uint8_t area[2][1 << 23];
};

// Gives percentages of the frames in each direction.
struct Spoil {
  double lose = 0;
  double damage = 0;  // four bytes are overwritten, which only PM notices
  double duplicate = 0;
};

// Runs one end: 0 or 1. It reports through Shared, and throws to fail the run.
using Side = std::function<void(int side, Shared& shared)>;

class TwoEnds {
 public:
  // If `with_network` is true, makes the namespaces (needs root).
  explicit TwoEnds(bool with_network);
  ~TwoEnds();
  TwoEnds(const TwoEnds&) = delete;
  TwoEnds& operator=(const TwoEnds&) = delete;

  // Runs both ends and waits for them. Throws with the reason if one fails or takes too long.
  Shared& run(const Side& side);

  const Shared& shared() const { return *shared_; }

  // Moves the calling process into the namespace of `side`.
  void enter(int side) const;

  // Returns the address in the namespace of `side`; "127.0.0.1" without network.
  std::string address(int side) const;
  std::string mac(int side) const;
  static constexpr const char* kInterface = "pm0";
  // Makes nftables select `percent` of the frames at random and drop them, or let them pass anyway
  // to measure the cost of the selection. 0 removes the filter.
  void lose(double percent, bool passes = false);
  // Makes the link worse, for single frames. Returns false and the reason if nftables cannot do it
  // here.
  bool spoil(const Spoil& spoil, std::string& reason);
  // Makes the link carry single frames from now on: bursts are cut before it.
  void cut_bursts();
  // Puts a bridge of a third namespace between the ends, whose own links then carry 9000 bytes. The
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

// Makes both ends wait for each other.
void meet(Shared& shared, std::uint32_t times);

double now_seconds();

struct Spread {
  double median = 0, low = 0, high = 0;  // over the rounds
  std::vector<double> samples;           // one per round, in their order
};

Spread spread_of(std::vector<double> values);

}  // namespace score::bench
