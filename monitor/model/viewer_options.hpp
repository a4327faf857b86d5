#pragma once
// ViewerOptions are the content and rate that a viewer requests, in the query of an address or in a
// WebSocket message. They are pure.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score::monitor {

// Part names the sections of a document; `cluster` is always included.
enum class Part : std::uint8_t {
  Nodes,
  Matrix,
  Slices,
  Jobs,
  Processes,
  Switches,
  Traffic,
  Events,
  Peers,  // measured only if a viewer requests it by name
};

inline constexpr std::size_t kParts = 9;
inline constexpr std::uint32_t kUsualParts = (1U << static_cast<unsigned>(Part::Peers)) - 1;

// Samples and documents are made at multiples of this.
inline constexpr Duration kTick = 100ms;
inline constexpr std::uint32_t kMostTicks = 100;  // one document per 10 s
inline constexpr double kSlowestRate = 0.1, kFastestRate = 10;

// Two viewers with equal filters and rights get the same bytes.
struct Filter {
  std::uint32_t parts = kUsualParts;  // bits by Part
  std::optional<JobId> job;
  std::string user;  // empty: all

  [[nodiscard]] bool has(Part part) const {
    return (parts & (1U << static_cast<unsigned>(part))) != 0;
  }

  friend auto operator<=>(const Filter&, const Filter&) = default;
};

// Returns true if the filter selects anything that nodes measure.
[[nodiscard]] inline bool is_measured(const Filter& filter) {
  return filter.has(Part::Nodes) || filter.has(Part::Slices) || filter.has(Part::Processes) ||
         filter.has(Part::Switches) || filter.has(Part::Traffic) || filter.has(Part::Peers);
}

struct ViewerOptions {
  std::uint32_t ticks = 10;  // between documents
  Filter filter;
  std::optional<std::uint64_t> count;  // documents until the end

  [[nodiscard]] Duration period() const { return kTick * ticks; }
};

using Query = std::vector<std::pair<std::string, std::string>>;

// Returns `defaults` changed by the query. Errors: Malformed, for unknown names too.
[[nodiscard]] Result<ViewerOptions> read_query(const Query& query, ViewerOptions defaults);

// Parses a number such as "0.5", without an exponent and finite. Errors: Malformed.
[[nodiscard]] Result<double> parse_decimal(std::string_view text);
// Parses names of parts such as "jobs,nodes". Errors: Malformed.
[[nodiscard]] Result<std::uint32_t> parse_parts(std::string_view text);
// Converts a rate in documents per second. Errors: Malformed, TooLarge.
[[nodiscard]] Result<std::uint32_t> ticks_of_rate(double rate);

// ViewerMessage is a message of a WebSocket viewer.
struct ViewerMessage {
  ViewerOptions options;
  std::optional<bool> pause;
};

// Returns `current` changed by the message. Errors: Malformed.
[[nodiscard]] Result<ViewerMessage> read_message(std::string_view json, ViewerOptions current);

}  // namespace score::monitor
