// What a thread that polls a link knows of itself. Each thread has its own: one that computes
// between its polls shall not sleep because another one polls for long.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/fi/link/mpi_call.hpp"

#include <cstdint>

namespace score::pm::fi {

struct Poller {
  // Both chosen: a wait that is over by then need not be named, for that takes some 20 us.
  static constexpr std::uint64_t kNameAfterUs = 20'000;
  static constexpr std::uint64_t kNameEveryUs = 1'000'000;

  const void* link = nullptr;
  std::uint32_t silence = 0;  // the link's, that the episode belongs to
  PollEpisode episode{poll_us_from_environment(), 0};
  std::uint64_t name_at_us = kNameAfterUs;  // of silence
  MpiCall call;                             // while it rests
  bool is_named = false;                    // the link has not taken `call` over yet

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
    forget_call();
  }

  void forget_call() {
    name_at_us = kNameAfterUs;
    call = {};
    is_named = false;
  }
};

}  // namespace score::pm::fi
