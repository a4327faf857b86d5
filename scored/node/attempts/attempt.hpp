// Defines the state of one attempt on this node, and the parts of the daemon that this folder uses.
#pragma once

#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/model/usage.hpp"
#include "base/os/fd.hpp"
#include "base/units.hpp"
#include "proto/checkpoint.pb.h"
#include "proto/convert/convert.hpp"
#include "proto/stacks.pb.h"
#include "proto/transport/connection.hpp"
#include "scored/node/attempts/job_cgroups.hpp"
#include "scored/node/hooks/node_hooks.hpp"
#include "scored/node/link/head_link.hpp"
#include "scored/node/link/launcher_link.hpp"
#include "scored/node/link/thaw_guard.hpp"
#include "scored/node/network/networks.hpp"
#include "scored/node/switch/switcher.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace score::node {

struct Attempt {
  AttemptId id{};
  std::string socket;
  std::optional<UserId> user;             // from the launch order, or from the name of the socket
  Bytes memory{};                         // its limit
  Bytes memory_peak{};                    // the largest sample
  Bytes memory_lately{};                  // likewise, since the last UsageSample
  base::Usage reported{};                 // in UsageSamples so far
  std::vector<std::uint32_t> cores;       // of this node
  std::vector<std::uint32_t> ranks;       // of its tasks here
  std::vector<pid_t> tasks;               // set once they have started
  std::vector<std::uint32_t> was_ending;  // ranks that were already ending when the attempt was
                                          // killed
  std::shared_ptr<proto::Connection> connection;
  std::string secret;  // of wire::AttemptSecret; empty: the head has sent none
  pid_t shepherd = 0;
  pid_t group = 0;
  UniqueFd pidfd;            // of the shepherd
  TimePoint window{};        // start of the period in which `frames` is counted
  std::uint32_t frames = 0;  // received from the shepherd in that period
  bool is_killed = false;
  bool is_retired = false;  // its tasks have ended
  bool is_removed = false;
  bool is_cleared = false;   // removed, and nothing of it is left on the node
  bool is_resuming = false;  // until the report arrives; the shepherd repeats earlier frames after
                             // it
  bool has_volume = false;   // it has a volume here, or may have one
  bool is_volume_gone = false;
  bool is_shepherd_gone = false;       // it died, so it has not removed what its tasks left
  bool sends_fence_pieces = false;     // its shepherd was told to; it sends no larger FenceEnter
  bool may_relay = false;              // the head has room for a large JobRelay
  wire::ScratchSample volume;          // the last sample of the volume's server
  std::shared_ptr<HookHandle> prolog;  // while it runs
  std::optional<JobId> allocation;     // of a step that has entered it
  bool has_hooks = false;              // its prolog has begun, so its end waits for the epilog
  bool is_finishing = false;           // its end is known, and its epilog runs
  bool has_refused_output = false;     // the head has not asked for it again
  bool reads_stacks = false;           // its shepherd does
  std::uint8_t checkpoint = 0;         // it may be saved: see launcher::StartRequest
  bool has_own_ids = false;            // its process ids are those of a namespace
  std::optional<wire::ShepherdCheckpointed> checkpointed;  // as `stacks`
  std::optional<wire::ShepherdStacksRead> stacks;  // its shepherd's last answer, until it is used
  bool is_unconfirmed = false;  // output was sent that the head may not have received yet
};

using AttemptPtr = std::shared_ptr<Attempt>;

// Lists what the attempts work with. All of it outlives the attempts; `tasks` is stopped first.
struct AttemptParts {
  asio::any_io_executor io;
  Clock& clock;
  TaskGroup& tasks;
  LauncherLink& launcher;
  ThawGuard& guard;
  HeadLink& head;
  Switcher& switcher;
  Networks& networks;
  const JobCgroups* cgroups;  // null: process groups are used instead
  NodeHooks& hooks;
};

}  // namespace score::node
