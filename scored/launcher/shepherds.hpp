// The launcher's children: which shepherds live, what to do when one has ended.
#pragma once

#include "base/limits.hpp"
#include "scored/launcher/start.hpp"

#include <cstddef>
#include <cstdint>
#include <poll.h>
#include <sys/types.h>

namespace score::launcher {

class Shepherds {
 public:
  [[nodiscard]] std::size_t count() const { return count_; }

  [[nodiscard]] bool has(std::uint64_t attempt) const;

  [[nodiscard]] bool full() const { return count_ == kMax; }

  // Takes the pidfd. Not when full.
  void add(std::uint64_t attempt, const Started& started);
  // Its group gets no SIGCONT any more; it is still waited for.
  void forget(std::uint64_t attempt);
  // SIGCONT to the groups of all; how many.
  int continue_all() const;

  // One entry each for poll(2), at most kMax; handle() gets them back afterwards.
  std::size_t fill(pollfd* polled) const;
  // Reaps the shepherds that ended.
  void handle(const pollfd* polled, std::size_t count);

  // A start failed half way: there may be children to sweep.
  void expect_orphans() { orphans_ = true; }

  // Kills and reaps children that are no shepherds: what ended shepherds left behind. True: some
  // may be left (dying ones hand over their own children), so call again soon.
  bool sweep();

  static constexpr std::size_t kMax = limits::kMaxJobsPerNode;

 private:
  struct Entry {
    std::uint64_t attempt;
    pid_t shepherd;
    pid_t group;  // 0: forgotten
    int pidfd;
  };

  [[nodiscard]] bool is_shepherd(pid_t pid) const;
  // How many children that are no shepherds it killed.
  int kill_strangers() const;

  Entry entries_[kMax] = {};
  std::size_t count_ = 0;
  bool orphans_ = false;
};

}  // namespace score::launcher
