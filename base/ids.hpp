#pragma once
// Identifiers are types: a NodeId cannot be passed for a JobId, added to, or made from a number by
// accident. Raw integers appear only where a message is converted (proto/).
//
// base's names are in score::base, an inline namespace. Other folders write JobId, or base::JobId
// where that reads better.

#include <fmt/format.h>

#include <compare>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace score::inline base {

// An Id is a number with a meaning. Conversions are explicit in both directions; ids are ordered,
// hashable and formatted as the number. A default-constructed id is 0; see each alias for the
// meaning of 0.
template <typename Tag, std::unsigned_integral Rep>
class Id {
 public:
  using rep = Rep;

  constexpr Id() = default;

  constexpr explicit Id(Rep value) : value_(value) {}

  [[nodiscard]] constexpr Rep value() const { return value_; }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Rep value_ = 0;
};

// A host running scored; index into the head's node table, from 0.
using NodeId = Id<struct NodeTag, std::uint32_t>;
// A parallel program as its user sees it; from 1, never reused. 0 is no job.
using JobId = Id<struct JobTag, std::uint64_t>;
// One process of a job, 0 .. size-1.
using Rank = Id<struct RankTag, std::uint32_t>;
// A row of the Ousterhout matrix, from 0.
using SlotIndex = Id<struct SlotTag, std::uint32_t>;
// Incarnation number: of a timetable or of a head. The larger one wins.
using Epoch = Id<struct EpochTag, std::uint64_t>;
// One try to run a job; a requeued job has several. Unique over the cluster's life. 0 is no
// attempt.
using AttemptId = Id<struct AttemptTag, std::uint64_t>;
// The kernel's uid and gid.
using UserId = Id<struct UserTag, std::uint32_t>;
using GroupId = Id<struct GroupTag, std::uint32_t>;

// A RequestId identifies one submission. The client chooses it at random, so that a repeated call
// is recognised and starts only one job. All zero is no id.
struct RequestId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  // Returns an id from the kernel's random source, and aborts if the kernel has none.
  static RequestId random();
  // Parses exactly 32 hexadecimal digits, as to_string() returns them.
  static std::optional<RequestId> parse(std::string_view text);

  [[nodiscard]] std::string to_string() const;

  [[nodiscard]] bool is_none() const { return high == 0 && low == 0; }

  friend constexpr auto operator<=>(const RequestId&, const RequestId&) = default;
};

}  // namespace score::inline base

template <typename Tag, typename Rep>
struct std::hash<score::Id<Tag, Rep>> {
  std::size_t operator()(score::Id<Tag, Rep> id) const noexcept {
    return std::hash<Rep>()(id.value());
  }
};

template <>
struct std::hash<score::RequestId> {
  // The halves are already random, so either of them would do.
  std::size_t operator()(const score::RequestId& id) const noexcept { return id.high ^ id.low; }
};

template <typename Tag, typename Rep>
struct fmt::formatter<score::Id<Tag, Rep>> : fmt::formatter<Rep> {
  template <typename Context>
  auto format(score::Id<Tag, Rep> id, Context& context) const {
    return fmt::formatter<Rep>::format(id.value(), context);
  }
};

template <>
struct fmt::formatter<score::RequestId> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(const score::RequestId& id, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(id.to_string(), context);
  }
};
