// This model has two heads, their disks, a few witnesses and the links between them. It is built
// around the shipped gang::Leadership and gang::Witness and explored breadth first. Everything that
// can happen in a state is enumerated: time passes, a client submits, the follower stores the log,
// and within a budget a link fails in one direction, a message is late, a process or a clock stops,
// a disk is replaced by an older copy, a witness forgets or lies.
//
// Claims:
//   safety    the head that was elected last has every acknowledged change; two heads are never in
//             charge at once, unless a clock stopped
//   progress  from every reachable state, if all faults end, one head leads and the other one
//             follows; if the other head never returns, a head that has every change leads alone
//
// A change that was acknowledged while the leader had no quorum of the witnesses is lost with both
// disks, so safety does not cover it once a disk was replaced.
#pragma once

#include "gang/leadership/leadership.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace score::gang::model {

// How often each fault may happen in one run.
struct Faults {
  int cuts = 0;       // a link fails or heals, in one direction
  int late = 0;       // a message arrives at any later time
  int crashes = 0;    // of a head
  int old_disks = 0;  // a head restarts on an older copy of its disk
  int stops = 0;      // a head and its clock stand still
  int forgets = 0;    // a witness restarts without memory
  int lies = 0;       // the lying witness changes what it answers
};

struct World {
  std::size_t witnesses = 3;
  std::size_t liars = 0;   // Settings::liars
  bool has_liar = false;   // the last witness answers what it likes
  bool can_forge = false;  // ... and makes marks of its own, as if it had the cluster key
  bool is_parted = false;  // one head leads, then the link between the heads fails for good
  Faults faults;
  std::uint8_t entries = 2;  // changes that clients submit
  std::uint64_t terms = 8;   // no later elections
  std::size_t max_states = 2'000'000;
  std::size_t progress_every = 50;  // progress is checked for one state in so many
};

struct Findings {
  std::size_t states = 0;
  std::size_t acknowledged = 0;  // states with an acknowledged change
  std::size_t second_terms = 0;  // states after a take-over
  std::size_t progress_checks = 0;
  std::string broken;  // the first broken claim and the steps to it; empty if none
  bool truncated = false;
};

[[nodiscard]] Findings explore(const World& world);

}  // namespace score::gang::model
