#pragma once
// One node's PMIx server of one job: libpmix behind the few things a shepherd wants to know. Fences
// of the whole job go through the shepherd to the head; what the node's own ranks settle among
// themselves never leaves libpmix.
//
// libpmix is one per process and calls from its own thread, so this is one per process too; all
// functions may be called from any thread.

#include "proto/common.pb.h"
#include "proto/frames/frames.hpp"
#include "scored/job/plan/plan.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace score::pmix {

// A frame for the shepherd; called from any thread, must not call back.
using Send = std::function<void(proto::FrameType type, std::string_view payload)>;

// Starts the server. directory: exists, the user's, for sockets and files of this job. The result
// is what every task needs in its environment ("NAME=value", without PMIX_RANK). Once in a process.
// Errors: Unsupported with PMIx's own words.
base::Result<std::vector<std::string>> start_server(const shepherd::Plan& plan,
                                                    const std::string& directory, Send send);

// Tasks of another world are about to start on any of the job's nodes; answered by PmixWorldReady.
void add_world(const shepherd::Plan& world);

// Of PmixSpawn: the world runs; 0: it was not started.
void spawn_done(std::uint64_t token, std::uint32_t world);

// All nodes are in. A sequence that is not waited for is ignored.
void complete_fence(std::uint64_t sequence, std::string data);

// From another node of the job.
void receive_relay(std::uint32_t from, const wire::PmixPeer& message);

// The thread that reads the shepherd calls this when wake_descriptor() is readable and, while it
// says true (something waits for an answer), once a second.
bool take_turn();
[[nodiscard]] int wake_descriptor();

}  // namespace score::pmix
