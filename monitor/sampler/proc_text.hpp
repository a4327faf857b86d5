#pragma once
// The files of /proc and of cgroups that a load is made from, as values. See proc(5) and the
// kernel's cgroup-v2 document. Pure.

#include "base/result.hpp"
#include "base/time.hpp"

#include <cstdint>
#include <string_view>

namespace score::monitor {

// Of /proc/PID/stat.
struct ProcessStat {
  char state = '?';
  std::int32_t parent = 0;
  std::uint64_t user_ticks = 0;      // with waited-for children
  std::uint64_t system_ticks = 0;    // with waited-for children
  std::uint64_t children_ticks = 0;  // of the two, what children had
  std::uint32_t threads = 0;
  std::uint64_t resident_pages = 0;
};

// The program's name in it may hold anything, also blanks and parentheses. Errors: Malformed.
[[nodiscard]] Result<ProcessStat> parse_stat(std::string_view text);

// Of /proc/PID/schedstat: the first thread's.
struct ProcessSchedule {
  Duration ran{0};
  std::uint64_t turns = 0;  // times it got a core
  Duration waited{0};       // for one, while it could run

  friend bool operator==(const ProcessSchedule&, const ProcessSchedule&) = default;
};

// CPU of a cgroup and all below it, the removed ones too.
struct CgroupCpu {
  Duration user{0}, system{0};
};

// Of cpu.stat. Errors: Malformed.
[[nodiscard]] Result<CgroupCpu> parse_cpu_stat(std::string_view text);

// Errors: Malformed.
[[nodiscard]] Result<ProcessSchedule> parse_schedule(std::string_view text);

}  // namespace score::monitor
