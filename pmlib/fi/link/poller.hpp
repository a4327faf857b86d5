// What a thread that polls a link knows of itself. Each thread has its own: one that computes
// between its polls shall not sleep because another one polls for long.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/endpoint/quick_returns.hpp"
#include "pmlib/fi/link/mpi_call.hpp"

#include <cstdint>

namespace score::pm::fi {

struct Poller {
  // The call is looked up before the first rest, which depends on it, and then from time to time:
  // that takes some 20 us. Chosen.
  static constexpr std::uint64_t kNameEveryUs = 500'000;
  static constexpr std::uint64_t kNever = UINT64_MAX;

  const void* link = nullptr;
  std::uint32_t silence = 0;  // the link's, that the episode belongs to
  PollEpisode episode{poll_us_from_environment(), 0};
  QuickReturns returns;
  std::uint64_t name_at_us = kNever;  // of silence
  MpiCall call;                       // as of then
  bool is_named = false;              // the link has not taken `call` over yet
  std::uint32_t peeks = 0;            // the link's, at the last look

  // Looks up what the thread has called, from time to time. It reads the lists of loaded libraries,
  // which takes locks: called without the link's.
  void name_call(pm::Endpoint& pm) {
    if (episode.silence_us() < name_at_us) return;
    name_at_us = episode.silence_us() + kNameEveryUs;
    call = find_mpi_call();
    is_named = true;
    episode.rested(pm.now(), thread_used_us());
  }

  // Another silence, or another link.
  void start_anew(const pm::Endpoint& pm) {
    episode.found_something();
    episode.set_limits(poll_us_from_environment(), pm.longest_rest_us());
    returns.start_anew();
    forget_call();
  }

  void forget_call() {
    const std::int64_t poll_us = poll_us_from_environment();
    name_at_us = poll_us < 0 ? kNever : static_cast<std::uint64_t>(poll_us);
    call = {};
    is_named = false;
  }
};

}  // namespace score::pm::fi
