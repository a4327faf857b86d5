// Passes the head's orders to save an attempt on to its shepherd (docs/adr/0134).
#pragma once

#include "proto/checkpoint.pb.h"
#include "scored/node/observe/stacks.hpp"

namespace score::node {

// Sends the reply, at the latest after order.limit_ns(). The order to hold the tasks waits until
// the timetable has stopped them.
[[nodiscard]] asio::awaitable<void> answer_checkpoint(StacksParts parts,
                                                      wire::CheckpointOrder order);

// Answers the head's request about a stopped attempt: StacksRequest or CheckpointOrder. Errors:
// Malformed.
[[nodiscard]] Result<asio::awaitable<void>> answer_about_attempt(const StacksParts& parts,
                                                                 const proto::InFrame& frame);

}  // namespace score::node
