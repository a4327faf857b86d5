#pragma once
// What a job waits for besides its place in the queue: other jobs, and times. Plain values.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

inline constexpr std::size_t kMaxDependencies = 1'000;  // of one job

// Numbers as in wire::Dependency::Kind.
enum class After : std::uint8_t {
  Started,  // "after": its tasks have started, or it has ended
  Ended,    // "afterany"
  Ok,       // "afterok": Completed
  NotOk,    // "afternotok": it ended otherwise
};

struct Dependency {
  After kind = After::Ended;
  JobId job;

  friend bool operator==(const Dependency&, const Dependency&) = default;
};

struct Conditions {
  std::vector<Dependency> after;  // all of them; of jobs with smaller numbers
  bool singleton = false;         // and every earlier job of its user and name
  WallTime begin{};               // not before; 0: at once
  WallTime deadline{};            // it ends by then; 0: none
  bool end_if_never = false;      // end it if a dependency can never be met; else it waits

  [[nodiscard]] bool empty() const { return *this == Conditions(); }

  friend bool operator==(const Conditions&, const Conditions&) = default;
};

// "" for none. Errors of reading: Malformed, TooLarge (more than kMaxDependencies).
[[nodiscard]] std::string pack_conditions(const Conditions& conditions);
[[nodiscard]] Result<Conditions> unpack_conditions(std::string_view bytes);

// "afterok:12"
[[nodiscard]] std::string name_of(const Dependency& dependency);

}  // namespace score::head
