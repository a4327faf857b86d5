// These are the users that the daemons of an installed cluster run as. A host that is both head and
// node has both users, so that an attacker who controls a node daemon can read neither the
// cluster's key nor the jobs' database.
#pragma once

#include <optional>
#include <pwd.h>
#include <sys/types.h>

namespace score::base {

inline constexpr const char* kHeadUser = "scored-head";
inline constexpr const char* kNodeUser = "scored-node";
// The user of both daemons in earlier versions; such daemons may still run while the files are
// upgraded.
inline constexpr const char* kFormerUser = "scored";

// Returns nothing if this host has no such user. The call may wait for a directory service.
inline std::optional<uid_t> uid_of(const char* user) {
  const passwd* entry = ::getpwnam(user);
  return entry == nullptr ? std::nullopt : std::optional(entry->pw_uid);
}

// Returns true if the user is that of a head or of a node daemon.
inline bool is_daemon_user(uid_t user) {
  return uid_of(kHeadUser) == user || uid_of(kNodeUser) == user || uid_of(kFormerUser) == user;
}

}  // namespace score::base
