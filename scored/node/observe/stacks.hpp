// Answers the head's requests for the stacks of an attempt's tasks: waits until the attempt has
// stopped by the timetable, has its shepherd read them, and adds what the PM contexts say.
#pragma once

#include "base/async/asio.hpp"
#include "gang/node/freeze_watch.hpp"
#include "gang/node/node_agent.hpp"
#include "proto/stacks.pb.h"
#include "scored/node/attempts/attempts.hpp"

namespace score::node {

struct StacksParts {  // all must outlive the coroutine
  Clock& clock;
  const gang::NodeAgent& agent;
  const Attempts& attempts;
  const JobCgroups* cgroups;  // null: process groups are used instead
  const Networks& networks;
  HeadLink& head;
};

// Returns true if the timetable leaves the attempt out and its tasks stand still.
[[nodiscard]] bool is_stopped(const StacksParts& parts, const Attempt& attempt);

// Sends the answer, at the latest after request.limit_ns(). What the shepherd says is its user's
// word: it can only spoil the picture of the user's own job.
[[nodiscard]] asio::awaitable<void> answer_stacks(StacksParts parts, wire::StacksRequest request);

}  // namespace score::node
