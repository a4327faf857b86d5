#pragma once

// A scope of systemd's user manager: a cgroup that its user may divide. Asio-free.

namespace score::inline base {

// Moves this process into a new scope with Delegate=yes, so that own_cgroup() is a directory in
// which we may make others. False where there is no user manager, it refuses, or it takes longer
// than a second; then nothing has changed. Root stays where it is: it needs no permission.
bool join_user_scope();

}  // namespace score::inline base
