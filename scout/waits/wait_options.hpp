// Adds options that delay a job: --after, --begin, --deadline; and --array, whose tasks may run one
// after the other.
#pragma once

#include "base/result.hpp"
#include "base/time.hpp"
#include "proto/client.pb.h"
#include "proto/documents/words.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace score::scout {

struct WaitOptions {
  std::string after;
  std::string begin;
  std::string deadline;
  bool end_if_never = false;
  std::string array;
};

// Adds all options but --array.
void add_wait_options(CLI::App& app, WaitOptions& options);
void add_array_option(CLI::App& app, WaitOptions& options);

// Fills submit.conditions and submit.array, which the head reads. Errors: Malformed and TooLarge,
// which name the option.
Status fill_conditions(const WaitOptions& options, WallTime now, wire::Submit& submit);

using proto::parse_after;

// Parses a time in the future and returns nanoseconds of wall time. Accepts "16:00" and "16:00:30"
// (the next such time of day after `from`), "2026-12-01", "2026-12-01T08:30", "2026-12-01 08:30:59"
// (all local), "2h", "now+2h". Errors: Malformed, which quotes the word.
Result<std::int64_t> parse_ahead(std::string_view word, WallTime now, WallTime from);

inline Result<std::int64_t> parse_ahead(std::string_view word, WallTime now) {
  return parse_ahead(word, now, now);
}

}  // namespace score::scout
