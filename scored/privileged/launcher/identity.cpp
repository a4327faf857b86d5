#include "scored/privileged/launcher/identity.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

namespace score::launcher {

namespace {

constexpr int kMaxGroups = 65'536;  // NGROUPS_MAX of Linux
constexpr int kVariables = 5;

gid_t g_groups[kMaxGroups];
gid_t g_present[kMaxGroups];
char g_text[4'096];
char* g_environment[kVariables + 1];

// Returns false if the text does not fit.
bool build_environment(const passwd& entry) {
  const int length =
      snprintf(g_text, sizeof g_text,
               "PATH=/usr/local/bin:/usr/bin:/bin%cHOME=%s%cUSER=%s%cLOGNAME=%s%cSHELL=%s", '\0',
               entry.pw_dir, '\0', entry.pw_name, '\0', entry.pw_name, '\0', entry.pw_shell);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof g_text) return false;
  char* next = g_text;
  for (int i = 0; i < kVariables; ++i, next += strlen(next) + 1) g_environment[i] = next;
  return true;
}

int compare(const void* a, const void* b) {
  return *static_cast<const gid_t*>(a) < *static_cast<const gid_t*>(b) ? -1 : 1;
}

bool has_groups(const UserIdentity& identity) {
  const int count = getgroups(kMaxGroups, g_present);
  if (count != identity.group_count) return false;
  qsort(g_present, static_cast<std::size_t>(count), sizeof *g_present, &compare);
  return memcmp(g_present, identity.groups, static_cast<std::size_t>(count) * sizeof(gid_t)) == 0;
}

}  // namespace

int look_up(uid_t user, UserIdentity& identity) {
  char name[16], home[] = "/", shell[] = "/bin/sh";
  snprintf(name, sizeof name, "%u", user);
  const passwd self{name, nullptr, user, getegid(), nullptr, home, shell};
  errno = 0;
  const passwd* entry = getpwuid(user);
  // Containers often run as a user without an entry.
  if (entry == nullptr && user == geteuid()) entry = &self;
  if (entry == nullptr) return errno != 0 ? errno : ENOENT;
  if (!build_environment(*entry)) return E2BIG;
  int count = kMaxGroups;
  if (getgrouplist(entry->pw_name, entry->pw_gid, g_groups, &count) < 0) return E2BIG;
  qsort(g_groups, static_cast<std::size_t>(count), sizeof *g_groups, &compare);
  identity = {user, entry->pw_gid, g_groups, count, g_environment};
  return 0;
}

const char* become(const UserIdentity& who) {
  const auto count = static_cast<std::size_t>(who.group_count);
  const bool switches = geteuid() == 0 && setgroups(count, who.groups) == 0;
  // Root of a user namespace and root without CAP_SETGID start only their own jobs, as they are.
  if (!switches && geteuid() == 0 && (errno != EPERM || who.uid != 0)) return "setgroups";
  if (switches && setresgid(who.gid, who.gid, who.gid) != 0) return "setresgid";
  if (switches && setresuid(who.uid, who.uid, who.uid) != 0) return "setresuid";
  uid_t uid[3] = {};
  gid_t gid[3] = {};
  if (getresuid(&uid[0], &uid[1], &uid[2]) != 0) return "getresuid";
  if (getresgid(&gid[0], &gid[1], &gid[2]) != 0) return "getresgid";
  errno = EPERM;
  for (int i = 0; i < 3; ++i) {
    if (uid[i] != who.uid) return "verify the user id";
    if (switches && gid[i] != who.gid) return "verify the group id";
  }
  if (switches && !has_groups(who)) return "verify the groups";
  // Only root itself may be able to become root again.
  errno = EPERM;
  return who.uid != 0 && setuid(0) == 0 ? "verify that root is left" : nullptr;
}

}  // namespace score::launcher
