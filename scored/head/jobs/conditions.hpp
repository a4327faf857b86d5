#pragma once
// Conditions describe what a job waits for before it joins the queue: other jobs, and times. They
// are plain values.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

inline constexpr std::size_t kMaxDependencies = 1'000;  // per job

// The values are those of wire::Dependency::Kind.
enum class After : std::uint8_t {
  Started,  // "after": its tasks have started, or it has ended
  Ended,    // "afterany"
  Ok,       // "afterok": Completed
  NotOk,    // "afternotok": it ended otherwise
};

struct Dependency {
  After kind = After::Ended;
  JobId job;
  Duration delay{0};  // of Started: so long after the start

  friend bool operator==(const Dependency&, const Dependency&) = default;
};

struct Conditions {
  std::vector<Dependency> after;  // all must be met, or one; they name jobs with smaller ids
  bool singleton = false;         // also wait for every earlier job of the same user and name
  WallTime begin{};               // earliest start; 0: none
  WallTime deadline{};            // the job ends by then; 0: none
  bool end_if_never = false;      // if a dependency can never be met, end the job
  bool any = false;               // one of `after` is enough

  [[nodiscard]] bool empty() const { return *this == Conditions(); }

  friend bool operator==(const Conditions&, const Conditions&) = default;
};

// Empty conditions are packed as "". Errors of unpack_conditions(): BadMessage, TooLarge (more than
// kMaxDependencies).
[[nodiscard]] std::string pack_conditions(const Conditions& conditions);
[[nodiscard]] Result<Conditions> unpack_conditions(std::string_view bytes);

// Returns a text such as "afterok:12" or "after:12+5", in minutes.
[[nodiscard]] std::string name_of(const Dependency& dependency);

}  // namespace score::head

#include "proto/waits_values.inc"  // IWYU pragma: export
