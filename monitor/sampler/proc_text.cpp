#include "monitor/sampler/proc_text.hpp"

#include "base/text.hpp"

#include <array>
#include <charconv>

namespace score::monitor {

namespace {

// These are the numbers of fields in proc(5), from 1. The list after the name begins with the
// third.
constexpr std::size_t kFirstField = 3;
constexpr std::size_t kParent = 4, kUser = 14, kSystem = 15, kChildrenUser = 16;
constexpr std::size_t kChildrenSystem = 17, kThreads = 20, kResident = 24;

// Returns field `index` as a number, or 0 if it is not a valid one, such as a negative number.
std::uint64_t number_at(const std::array<std::string_view, kResident + 1>& fields,
                        std::size_t index) {
  return parse_number<std::uint64_t>(fields[index]).value_or(0);
}

}  // namespace

Result<ProcessStat> parse_stat(std::string_view text) {
  const auto name_end = text.rfind(')');
  if (name_end == text.npos || name_end + 2 >= text.size()) return fail(Errc::Malformed, "stat");
  std::string_view rest = text.substr(name_end + 2);
  std::array<std::string_view, kResident + 1> fields;
  for (std::size_t index = kFirstField; index < fields.size(); ++index) {
    const auto end = rest.find(' ');
    fields[index] = rest.substr(0, end);
    if (fields[index].empty()) return fail(Errc::Malformed, "stat has {} fields", index - 1);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  ProcessStat stat;
  stat.state = fields[kFirstField].front();
  stat.parent = parse_number<std::int32_t>(fields[kParent]).value_or(0);
  const auto user = number_at(fields, kChildrenUser);
  const auto system = number_at(fields, kChildrenSystem);
  stat.user_ticks = number_at(fields, kUser) + user;
  stat.system_ticks = number_at(fields, kSystem) + system;
  stat.children_ticks = user + system;
  stat.threads = static_cast<std::uint32_t>(number_at(fields, kThreads));
  stat.resident_pages = number_at(fields, kResident);
  return stat;
}

Result<ProcessSchedule> parse_schedule(std::string_view text) {
  std::array<std::uint64_t, 3> numbers{};  // time on a core, time waiting for one, turns
  const char* next = text.data();
  const char* end = next + text.size();
  for (std::uint64_t& number : numbers) {
    const auto [stop, failed] = std::from_chars(next, end, number);
    if (failed != std::errc()) return fail(Errc::Malformed, "schedstat");
    next = stop + (stop != end && *stop == ' ' ? 1 : 0);
  }
  if (next != end && *next != '\n') return fail(Errc::Malformed, "schedstat");
  constexpr auto kMost = static_cast<std::uint64_t>(Duration::max().count());
  if (numbers[0] > kMost || numbers[1] > kMost) return fail(Errc::Malformed, "schedstat");
  const auto time = [](std::uint64_t ns) { return Duration(static_cast<Duration::rep>(ns)); };
  return ProcessSchedule{time(numbers[0]), numbers[2], time(numbers[1])};
}

Result<CgroupCpu> parse_cpu_stat(std::string_view text) {
  CgroupCpu cpu;
  int found = 0;
  for (const auto line : split(text, '\n')) {
    const auto blank = line.find(' ');
    if (blank == line.npos) continue;
    const auto key = line.substr(0, blank);
    if (key != "user_usec" && key != "system_usec") continue;
    const auto number = parse_number<std::int64_t>(line.substr(blank + 1));
    if (!number) return fail(Errc::Malformed, "cpu.stat: {}", key);
    (key == "user_usec" ? cpu.user : cpu.system) = std::chrono::microseconds(*number);
    ++found;
  }
  if (found != 2) return fail(Errc::Malformed, "cpu.stat");
  return cpu;
}

}  // namespace score::monitor
