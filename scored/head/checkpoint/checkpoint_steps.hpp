#pragma once
// Orders the steps of a save (docs/adr/0134).

#include "proto/checkpoint.pb.h"

namespace score::head {

// Returns the step after this one, which is not a last one (GO_ON and those behind it). A first
// node that did not answer in time may complete the set later, and remove the set before. So after
// COMPLETE nothing is removed: the next set that is complete removes an incomplete one.
[[nodiscard]] constexpr wire::CheckpointStep next_step(wire::CheckpointStep step, bool has_failed,
                                                       bool ends_job) {
  if (has_failed) return step == wire::COMPLETE ? wire::GO_ON : wire::ABANDON;
  if (step == wire::HOLD) return wire::SAVE;
  if (step == wire::SAVE) return wire::COMPLETE;
  return ends_job ? wire::END : wire::GO_ON;
}

}  // namespace score::head
