#pragma once

// Joins a scope of systemd's user manager: a cgroup that its user may divide. It is free of Asio.

namespace score::inline base {

// Moves this process into a new scope with Delegate=yes, so that we may make cgroups below
// own_cgroup(). Returns false and changes nothing if there is no user manager, if it refuses, or if
// it takes longer than a second. Root is not moved, because it needs no permission.
bool join_user_scope();

}  // namespace score::inline base
