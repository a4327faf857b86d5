// This fuzz target parses messages of a WebSocket viewer, and the bodies of actions.

#include "base/assert.hpp"
#include "monitor/model/action.hpp"
#include "monitor/model/json_input.hpp"
#include "monitor/model/viewer_options.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

using namespace score::monitor;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto message = read_message(text, ViewerOptions());
  if (message) {
    SCORE_ASSERT(message->options.ticks >= 1 && message->options.ticks <= kMostTicks);
    SCORE_ASSERT(message->options.filter.user.size() <= 64);
  }
  for (const char* name : {"set", "drain", "resume", "suspend", "cancel", "logout"}) {
    const auto action = parse_action(name, text);
    if (action && action->kind == ActionKind::Cancel) SCORE_ASSERT(action->job != score::JobId());
  }
  return 0;
}
