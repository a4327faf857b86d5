#pragma once
// The steps that all commands of Admin have in common.

#include "base/result.hpp"
#include "gang/state/step.hpp"
#include "scored/head/admin/admin_command.hpp"
#include "scored/head/admin/permissions.hpp"
#include "scored/head/cluster/head_context.hpp"

#include <functional>
#include <vector>

namespace score::head {

// Changes must be on disk before the command is carried out.
using Changes = std::vector<Change>;
// Sends what follows from a change of the cluster.
using Effect = std::function<void()>;

[[nodiscard]] Permissions::Request request_of(const AdminCommand& command);
// Returns the effect of these actions of the cluster, or its error.
[[nodiscard]] Result<Effect> effect_of(HeadContext& head, Result<gang::Actions> actions);
// Writes a command to the journal, the job's events and the viewers' feed.
void audit(HeadContext& head, const Peer& peer, const AdminCommand& command);

}  // namespace score::head
