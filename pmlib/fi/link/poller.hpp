// Holds the state of a thread that polls a link. Each thread has its own, because a thread that
// computes between its polls must not sleep when a different thread polls for long.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/endpoint/quick_returns.hpp"
#include "pmlib/fi/link/mpi_call.hpp"
#include "pmlib/fi/vain/call_return.hpp"
#include "pmlib/fi/vain/vain_polls.hpp"

#include <cstdint>
#include <cstdlib>

namespace score::pm::fi {

// Returns true if the user has set PM_POLL_US, the time after which a thread rests.
inline bool is_told_to_rest() {
  const char* const text = std::getenv("PM_POLL_US");
  return text != nullptr && *text != '\0';
}

struct Poller {
  // The call is looked up before the first rest, which depends on it, and then from time to time. A
  // look-up takes some 20 us, and ten times that with cold caches. If the user has set the time
  // before a rest, the first look-up does not precede kNameAfterUs. Both values are chosen.
  static constexpr std::uint64_t kNameAfterUs = 20'000;
  static constexpr std::uint64_t kNameEveryUs = 500'000;

  // After a look-up has shown that the thread may not rest, this many polls are not timed. Timing
  // takes a tenth of a microsecond, and a program that works on its own window polls that often.
  static constexpr std::uint32_t kUntimedPolls = 65'536;

  const void* rest = nullptr;  // the link's Rest
  std::uint32_t silence = 0;   // the link's silence that the episode belongs to
  PollEpisode episode{poll_us_from_environment(), 0};
  QuickReturns returns;
  std::uint64_t name_at_us = kNameAfterUs;  // time of silence before the next look-up
  MpiCall call;                             // result of the last look-up
  bool knows_call = false;
  bool is_named = false;      // the link has not taken over `call` yet
  std::uint32_t peeks = 0;    // the link's count at the last poll
  std::uint32_t untimed = 0;  // polls that need not be timed
  // These members are for polls of a thread that may not rest; see Rest::look().
  const void* vain_rest = nullptr;  // as `rest`
  std::uint32_t vain_silence = 0;   // as `silence`
  VainPolls vain;
  CallReturn call_return;
  bool is_published = false;  // the context says that it polls in vain

  // Looks up from time to time what the thread has called. This reads the lists of loaded libraries
  // and takes their locks, so the caller must not hold the link's lock.
  void name_call(pm::Endpoint& pm) {
    if (episode.silence_us() < name_at_us) return;
    name_at_us = episode.silence_us() + kNameEveryUs;
    call = find_mpi_call();
    knows_call = is_named = true;
    episode.rested(pm.now(), thread_used_us());
  }

  // Starts again for a different silence or a different link.
  void start_anew(const pm::Endpoint& pm) {
    episode.found_something();
    episode.set_limits(poll_us_from_environment(), pm.longest_rest_us());
    returns.start_anew();
    forget_call();
  }

  void forget_call() {
    name_at_us = is_told_to_rest() ? kNameAfterUs : kPollUs;
    call = {};
    knows_call = is_named = false;
  }
};

}  // namespace score::pm::fi
