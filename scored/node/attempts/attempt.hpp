// One attempt on this node, and what all parts of this room work with.
#pragma once

#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/os/fd.hpp"
#include "base/units.hpp"
#include "proto/convert/convert.hpp"
#include "proto/transport/connection.hpp"
#include "scored/node/attempts/job_cgroups.hpp"
#include "scored/node/link/head_link.hpp"
#include "scored/node/link/launcher_link.hpp"
#include "scored/node/link/thaw_guard.hpp"
#include "scored/node/network/networks.hpp"
#include "scored/node/switch/switcher.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace score::node {

struct Attempt {
  AttemptId id{};
  std::string socket;
  std::optional<UserId> user;  // as the launcher was ordered, or as the socket's name says
  Bytes memory{};
  std::vector<std::uint32_t> cores;       // of this node
  std::vector<std::uint32_t> ranks;       // of its tasks here
  std::vector<pid_t> tasks;               // once they started
  std::vector<std::uint32_t> was_ending;  // ranks that were ending already when it was killed
  std::shared_ptr<proto::Connection> connection;
  pid_t shepherd = 0;
  pid_t group = 0;
  UniqueFd pidfd;            // of the shepherd
  TimePoint window{};        // since when ...
  std::uint32_t frames = 0;  // ... so many came from the shepherd
  bool is_killed = false;
  bool is_retired = false;  // its tasks have ended
  bool is_removed = false;
  bool is_cleared = false;   // removed, and nothing of it is left on the node
  bool is_resuming = false;  // until the report comes; frames before it are repeated after it
  bool has_volume = false;   // or may have: of its own, here
  bool is_volume_gone = false;
  wire::ScratchSample volume;   // what its server counted last
  bool is_unconfirmed = false;  // output was sent; the head may not have it yet
};

using AttemptPtr = std::shared_ptr<Attempt>;

// All outlive the attempts; tasks is stopped first.
struct AttemptParts {
  asio::any_io_executor io;
  Clock& clock;
  TaskGroup& tasks;
  LauncherLink& launcher;
  ThawGuard& guard;
  HeadLink& head;
  Switcher& switcher;
  Networks& networks;
  const JobCgroups* cgroups;  // null: process groups
};

}  // namespace score::node
