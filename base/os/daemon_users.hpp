// The users whom the daemons of an installed cluster run as. A host that is head and node has both,
// so that a node daemon that was taken over has neither the cluster's key nor the jobs' database.
#pragma once

#include <optional>
#include <pwd.h>
#include <sys/types.h>

namespace score::base {

inline constexpr const char* kHeadUser = "scored-head";
inline constexpr const char* kNodeUser = "scored-node";
// Of both daemons in earlier versions; they may run on while the files are upgraded.
inline constexpr const char* kFormerUser = "scored";

// Empty: there is no such user on this host. It may wait for a directory service.
inline std::optional<uid_t> uid_of(const char* user) {
  const passwd* entry = ::getpwnam(user);
  return entry == nullptr ? std::nullopt : std::optional(entry->pw_uid);
}

// Whether the user is that of a head or of a node daemon.
inline bool is_daemon_user(uid_t user) {
  return uid_of(kHeadUser) == user || uid_of(kNodeUser) == user || uid_of(kFormerUser) == user;
}

}  // namespace score::base
