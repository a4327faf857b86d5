// Records the last switches of a node. The switcher's thread writes and the main thread reads,
// without waiting for each other.
#pragma once

#include "base/ids.hpp"
#include "base/model/switch_overhead.hpp"
#include "base/time.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace score::node {

struct SwitchRecord {
  static constexpr std::size_t kMaxListed = 4;  // per list; the counts are not limited

  TimePoint due{};      // boundary of the timetable
  Duration woke{0};     // after due
  Duration stopped{0};  // after due: when the leaving jobs have been stopped
  // These times are after due, and equal to `stopped` if no channel changed hands: the guard is
  // over, the channel's frames are saved, earlier frames are restored.
  Duration guarded{0};
  Duration saved{0};
  Duration restored{0};
  Duration done{0};  // after due: when the entering jobs continue
  Epoch epoch{};
  std::uint32_t left_count = 0, entered_count = 0;
  std::array<AttemptId, kMaxListed> left{}, entered{};
  std::uint32_t filling_count = 0;  // attempts that fill from now on
  std::uint32_t busy = 0;           // 1: a job is scheduled from now on
  std::array<AttemptId, kMaxListed> filling{};
  Duration slice{0};  // the slice that begins; 0: no boundary follows

  // Returns false if the record only notes that no job is scheduled any more.
  [[nodiscard]] bool is_switch() const { return left_count + entered_count > 0; }

  [[nodiscard]] SwitchMoments moments() const { return {woke, stopped, restored, done}; }

  void add_left(AttemptId attempt) {
    if (left_count < kMaxListed) left[left_count] = attempt;
    ++left_count;
  }

  void add_entered(AttemptId attempt) {
    if (entered_count < kMaxListed) entered[entered_count] = attempt;
    ++entered_count;
  }

  void add_filling(AttemptId attempt) {
    if (filling_count < kMaxListed) filling[filling_count] = attempt;
    ++filling_count;
  }

  friend bool operator==(const SwitchRecord&, const SwitchRecord&) = default;
};

class SwitchTrace {
 public:
  // The trace takes 750 KB when all of it is used; pages that were never written cost nothing.
  static constexpr std::size_t kEntries = 4'096;

  SwitchTrace();

  // Thread: the switcher's.
  void put(const SwitchRecord& record) noexcept;

  // Returns how many records have been put. Thread: any.
  [[nodiscard]] std::uint64_t written() const { return written_.load(std::memory_order_relaxed); }

  struct Extract {
    std::vector<SwitchRecord> records;  // oldest first
    std::uint64_t lost = 0;             // written, but overwritten since
  };

  // Returns the switches that were due after `since`. Thread: any.
  [[nodiscard]] Extract read(TimePoint since) const;
  // Returns the records after the first `seen`, at most the newest `most`; `seen` moves to the end.
  [[nodiscard]] Extract read_new(std::uint64_t& seen, std::size_t most) const;

 private:
  static constexpr std::size_t kWords = 23;  // per cell

  void read_range(std::uint64_t from, std::uint64_t end, Extract& extract) const;

  struct Free {
    void operator()(std::uint64_t* words) const;
  };

  // Cells are words that are only accessed atomically, so that reading a cell during an overwrite
  // is not a data race; claimed_ shows afterwards whether that happened. The pages are zero until
  // they are used.
  std::unique_ptr<std::uint64_t[], Free> words_;
  std::atomic<std::uint64_t> claimed_{0};  // number of put() calls that have begun
  std::atomic<std::uint64_t> written_{0};  // ... and that have finished
};

}  // namespace score::node
