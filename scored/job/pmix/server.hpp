#pragma once
// Runs one node's PMIx server of one job. It hides libpmix behind the few functions that a shepherd
// needs. Fences of the whole job go through the shepherd to the head; requests among the node's own
// ranks never leave libpmix.
//
// A process can have only one libpmix, which calls from its own thread. For this reason each
// process has one server, and all functions may be called from any thread.

#include "proto/common.pb.h"
#include "proto/frames/frames.hpp"
#include "scored/job/plan/plan.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace score::pmix {

// Sends a frame to the shepherd. It may be called from any thread and must not call back.
using Send = std::function<void(proto::FrameType type, std::string_view payload)>;

// Starts the server. The directory must exist and belong to the user; it receives the sockets and
// files of this job. Must be called only once per process. Errors: Unsupported, with the error text
// of PMIx.
base::Status start_server(const shepherd::Plan& plan, const std::string& directory, Send send);

// Announces that tasks of another world are about to start on any of the job's nodes. The server
// answers with PmixWorldReady.
void add_world(const shepherd::Plan& world);

// Answers PmixSpawn: `world` is running, or 0 if it was not started.
void spawn_done(std::uint64_t token, std::uint32_t world);

// Completes a fence, once all nodes have entered it. A sequence that is not pending is ignored.
void complete_fence(std::uint64_t sequence, std::string data);

// Handles a message from another node of the job.
void receive_relay(std::uint32_t from, const wire::PmixPeer& message);

// Handles pending work. The thread that reads the shepherd calls this when wake_descriptor() is
// readable. While it returns true (a request waits for an answer), that thread also calls it once
// per second.
bool take_turn();
[[nodiscard]] int wake_descriptor();

}  // namespace score::pmix
