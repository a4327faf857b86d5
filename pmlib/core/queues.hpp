// Reads which messages lie in the queues of a context whose owner may be hostile, for people who
// look for the rank that a job waits for.
#pragma once

#include <cstdint>
#include <vector>

namespace score::pm {

struct QueueSummary {
  static constexpr std::size_t kMaxRanksListed = 64;

  std::uint32_t received = 0;  // messages that have arrived and that the owner has not taken
  std::vector<std::uint32_t> received_from;  // their senders, ascending; at most kMaxRanksListed
  std::vector<std::uint32_t> sending_to;     // ranks that have not acknowledged all; likewise
};

// The conditions are those of read_summary(): pread, every number is checked, and a hostile owner
// can only cause wrong numbers. Returns EINVAL if the file is not a context.
int read_queues(int fd, QueueSummary& queues);

}  // namespace score::pm
