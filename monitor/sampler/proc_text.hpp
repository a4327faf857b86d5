#pragma once
// Parses the files of /proc and of cgroups from which a load is computed. See proc(5) and the
// kernel's cgroup-v2 document. It is pure.

#include "base/result.hpp"
#include "base/time.hpp"

#include <cstdint>
#include <string_view>

namespace score::monitor {

// ProcessStat contains fields of /proc/PID/stat.
struct ProcessStat {
  char state = '?';
  std::int32_t parent = 0;
  std::uint64_t user_ticks = 0;      // including waited-for children
  std::uint64_t system_ticks = 0;    // including waited-for children
  std::uint64_t children_ticks = 0;  // part of the two above that children used
  std::uint32_t threads = 0;
  std::uint64_t resident_pages = 0;
};

// Parses the text. The program's name in it may contain anything, even blanks and parentheses.
// Errors: Malformed.
[[nodiscard]] Result<ProcessStat> parse_stat(std::string_view text);

// ProcessSchedule contains /proc/PID/schedstat, the schedule of the first thread.
struct ProcessSchedule {
  Duration ran{0};
  std::uint64_t turns = 0;  // number of times that it got a core
  Duration waited{0};       // for a core, while it could run

  friend bool operator==(const ProcessSchedule&, const ProcessSchedule&) = default;
};

// CgroupCpu is the CPU time of a cgroup and all below it, including removed ones.
struct CgroupCpu {
  Duration user{0}, system{0};
};

// Parses cpu.stat. Errors: Malformed.
[[nodiscard]] Result<CgroupCpu> parse_cpu_stat(std::string_view text);

// Parses schedstat. Errors: Malformed.
[[nodiscard]] Result<ProcessSchedule> parse_schedule(std::string_view text);

}  // namespace score::monitor
