// Decides whether a thread that polls in vain may sleep, and whether only a message can end its
// wait.
//
// PM sees its own messages only, and an MPI library may communicate by other means: MPICH's shared
// memory between the ranks of a node, windows in the process's own memory or in its node's, Open
// MPI's BTLs. To PM a thread that works over these looks like one that waits. One sleep costs it
// little, but PM would let it sleep after every few polls, and its peers with it: it would do some
// hundred steps per second instead of a hundred thousand. So a thread goes on polling unless it
// waits for something that PM has, and PM carries all communication of the process. If its call may
// return without a message, as a test does, the call must also be repeated at once each time:
// otherwise the thread works in between.
//
// All functions here are pure.
#pragma once

#include "pmlib/core/segment.hpp"
#include "pmlib/fi/link/mpi_call.hpp"

namespace score::pm::fi {

// Holds everything that is known about a waiting thread.
struct WaitFacts {
  // ---- the process
  bool has_near_ranks = true;    // other ranks of its job are on this node, or may be
  bool is_near_by_pm = false;    // the user has disabled MPICH's shared memory between them
  bool is_told_to_rest = false;  // by the user, who knows the program
  // ---- the call
  MpiImplementation library = MpiImplementation::Other;
  MpiWait call = MpiWait::None;
  bool may_others_call = true;  // other threads may call MPI meanwhile
  bool may_end_by_file = true;  // it may wait for a request of input and output
  // ---- what PM has
  bool has_receive = false;      // one with a tag is posted
  bool has_own_receive = false;  // the library has posted one of its own, in a collective operation
  bool has_request = false;      // a sent message is not answered yet
  bool has_peeked = false;       // it has asked for an early message since its last poll
  bool has_late_work = false;    // PM has something to do without a message
  // ---- the thread: see QuickReturns
  bool returns_at_once = false;
};

// Returns true if PM carries all messages between the ranks of this node. Open MPI with mtl/ofi
// sends all messages by libfabric; if it uses other means, PM has nothing that the call waits for.
constexpr bool carries_near(const WaitFacts& w) {
  return !w.has_near_ranks || w.library == MpiImplementation::OpenMpi ||
         (w.library == MpiImplementation::Mpich && w.is_near_by_pm);
}

// Returns true if this process may never sleep while it waits for a message.
constexpr bool never_rests(const WaitFacts& w) {
  return !w.is_told_to_rest && w.library != MpiImplementation::Other && !carries_near(w);
}

// Returns true if PM has something that the call may be waiting for.
constexpr bool awaits_pm(const WaitFacts& w) {
  if (w.call == MpiWait::Collective) return w.has_own_receive || w.has_request;
  return w.has_receive || w.has_request || w.has_peeked;
}

constexpr bool may_rest(const WaitFacts& w) {
  if (w.is_told_to_rest) return true;
  if (w.call == MpiWait::Memory || !carries_near(w)) return false;
  if (w.library != MpiImplementation::Other && !awaits_pm(w)) return false;
  return w.call != MpiWait::None || (w.returns_at_once && !w.has_near_ranks);
}

// Returns true if only a message that PM will bring can end the call. A job is deadlocked if all
// its tasks wait in this way and no message is in flight. Requires may_rest().
constexpr bool waits_for_message(const WaitFacts& w) {
  if (w.may_others_call || w.has_late_work || !carries_near(w) || !awaits_pm(w)) return false;
  if (w.call == MpiWait::Collective) return w.has_own_receive;
  return w.call == MpiWait::Receive || (w.call == MpiWait::Request && !w.may_end_by_file);
}

// Returns Works for a thread that must go on polling.
constexpr ContextState state_of(const WaitFacts& w) {
  if (!may_rest(w)) return ContextState::Works;
  return waits_for_message(w) ? ContextState::Waits : ContextState::Rests;
}

}  // namespace score::pm::fi
