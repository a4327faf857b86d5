// Makes the same exchanges through PM, by its C interface.
#pragma once

#include "bench/pm/baselines.hpp"
#include "bench/pm/harness.hpp"

#include <string>

namespace score::bench {

enum class TransferKind { Message, Large, Write };

struct PmStream {
  Amount amount;
  TransferKind by = TransferKind::Message;
  unsigned outstanding = 2;  // transfers in flight, for Large and Write
  int hit_percent = -1;      // Write: register each time, with this percentage of pin-down hits
  std::size_t memory = 0;    // Message: the user's bytes that they pass through, if more than one
  unsigned warm_up = 0;      // Message and Write: transfers before the timed ones
  bool copies = true;        // Message: between the frame and the user's memory, at both ends
};

// `file` is an address file of the job; the sides are its ranks.
void pm_ping_pong(int side, Shared& shared, Amount amount, const std::string& file);
void pm_stream(int side, Shared& shared, PmStream stream, const std::string& file);

}  // namespace score::bench
