#include "scored/launcher/identity.hpp"

#include "base/limits.hpp"

#include <cerrno>
#include <cstdio>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

namespace score::launcher {

namespace {

constexpr std::size_t kTextBytes = 4096;

gid_t g_groups[limits::kMaxGroups];
char g_text[kTextBytes];
char* g_environment[6];

// Appends "NAME=value" to the block; false if it does not fit.
bool put(std::size_t& used, std::size_t index, const char* name, const char* value) {
  const int length = snprintf(g_text + used, kTextBytes - used, "%s=%s", name, value);
  if (length < 0 || static_cast<std::size_t>(length) >= kTextBytes - used) return false;
  g_environment[index] = g_text + used;
  used += static_cast<std::size_t>(length) + 1;
  return true;
}

bool build_environment(const passwd& entry) {
  std::size_t used = 0;
  return put(used, 0, "PATH", "/usr/local/bin:/usr/bin:/bin") &&
         put(used, 1, "HOME", entry.pw_dir) && put(used, 2, "USER", entry.pw_name) &&
         put(used, 3, "LOGNAME", entry.pw_name) && put(used, 4, "SHELL", entry.pw_shell);
}

}  // namespace

int look_up(uid_t user, Identity& identity) {
  errno = 0;
  const passwd* entry = getpwuid(user);
  if (entry == nullptr) return errno != 0 ? errno : ENOENT;
  if (!build_environment(*entry)) return E2BIG;
  int count = static_cast<int>(limits::kMaxGroups);
  if (getgrouplist(entry->pw_name, entry->pw_gid, g_groups, &count) < 0) return E2BIG;
  identity = {.uid = user,
              .gid = entry->pw_gid,
              .groups = g_groups,
              .group_count = count,
              .environment = g_environment};
  return 0;
}

const char* become(const Identity& identity) {
  if (geteuid() == 0) {
    if (setgroups(static_cast<std::size_t>(identity.group_count), identity.groups) != 0) {
      return "setgroups";
    }
    if (setresgid(identity.gid, identity.gid, identity.gid) != 0) return "setresgid";
    if (setresuid(identity.uid, identity.uid, identity.uid) != 0) return "setresuid";
  }
  uid_t real = 0;
  uid_t effective = 0;
  uid_t saved = 0;
  if (getresuid(&real, &effective, &saved) != 0) return "getresuid";
  const bool is_user = real == identity.uid && effective == real && saved == real;
  // Nobody but root himself may be able to become root again.
  if (!is_user || (identity.uid != 0 && setuid(0) == 0)) {
    errno = EPERM;
    return "verify the user id";
  }
  return nullptr;
}

}  // namespace score::launcher
