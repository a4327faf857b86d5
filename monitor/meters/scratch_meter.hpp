#pragma once
// ScratchMeter computes rates from totals for the servers of jobs' striped volumes on one node. It
// is pure.

#include "base/ids.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace score::monitor {

// VolumeSample describes the server of an attempt's volume. Reads, writes, requests and fallbacks
// count since it was started.
struct VolumeSample {
  AttemptId attempt{};
  Bytes capacity{0}, used{0};
  std::uint64_t read = 0, written = 0;  // bytes
  std::uint64_t requests = 0;
  std::uint64_t queue = 0;      // requests without a reply
  std::uint64_t restarts = 0;   // of server and mount
  std::uint64_t fallbacks = 0;  // connections that requested PM and use TCP
  bool is_down = false;         // it does not answer
};

struct VolumeLoad {
  AttemptId attempt{};
  Bytes capacity{0}, used{0};
  double read_rate = 0, write_rate = 0;  // bytes per second
  double request_rate = 0;               // per second
  std::uint64_t queue = 0;               // requests that are not answered yet
  std::uint64_t restarts = 0;            // of server and mount
  std::uint64_t fallbacks = 0;           // connections that requested PM and use TCP
  bool is_down = false;                  // the server does not answer
};

class ScratchMeter {
 public:
  // Processes all volumes of which the node has a part; volumes that are missing have ended.
  void feed(TimePoint taken, const std::vector<VolumeSample>& volumes);

  // Returns the volumes in order of attempts, or nullopt if they are unknown since the last
  // forget().
  [[nodiscard]] std::optional<std::vector<VolumeLoad>> volumes() const;

  // The following counters run since the first sample and include ended volumes; they never go
  // back.
  [[nodiscard]] std::uint64_t read_bytes() const { return read_; }

  [[nodiscard]] std::uint64_t written_bytes() const { return written_; }

  [[nodiscard]] std::uint64_t fallbacks() const { return fallbacks_; }

  // Notes that no more samples come.
  void forget();

 private:
  struct Volume {
    TimePoint at{};
    VolumeSample newest;
    VolumeLoad load;
  };

  std::map<AttemptId, Volume> volumes_;
  bool is_known_ = false;
  std::uint64_t read_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t fallbacks_ = 0;
};

}  // namespace score::monitor
