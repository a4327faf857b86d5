#pragma once
// Names of input and output files with the job's numbers in them. Pure.

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace score::shepherd {

struct PatternValues {
  std::uint64_t job = 0;
  std::uint32_t rank = 0;
  std::string_view node;
};

// %j job, %t rank, %N node name, %% a percent sign; a number before the letter pads %j and %t with
// zeros ("%4t", at most 10). Errors: Malformed (anything else after a %).
base::Result<std::string> expand_pattern(std::string_view pattern, const PatternValues& values);

// Does every rank, every node have a file of its own? A malformed pattern has neither.
struct PatternScope {
  bool per_rank = false;
  bool per_node = false;
};

PatternScope scope_of(std::string_view pattern);

}  // namespace score::shepherd
