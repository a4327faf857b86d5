// scored-launcher is the program that starts jobs' shepherds as their users. See protocol.hpp.
#include "scored/privileged/launcher/server.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <getopt.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using namespace score::launcher;

constexpr const char* kUsage =
    "usage: scored-launcher --rundir DIR --shepherd PATH [OPTION]...\n"
    "Starts jobs' shepherds as their users, for the node daemon at DIR/launcher.sock.\n\n"
    "  --rundir DIR         directory of the socket; only its owner may write there\n"
    "  --shepherd PATH      absolute path of scored-shepherd\n"
    "  --daemon-user USER   the only user who may connect (default: your own)\n"
    "  --network-interface NAME  open Ethernet rings for jobs' networks there\n"
    "  --min-uid N          start no jobs of users below this id (default: 1000)\n"
    "  --allow-uid N        also start jobs of this user; at most 16 times\n"
    "  --help               print this help and exit\n"
    "  --version            print the version and exit\n";

[[noreturn]] void refuse(const char* what, const char* value) {
  fprintf(stderr, "scored-launcher: %s%s (--help lists the options)\n", what, value);
  exit(2);
}

uid_t number(const char* text) {
  unsigned long value = 0;
  char rest = 0;
  const bool is_number =
      *text >= '0' && *text <= '9' && sscanf(text, "%10lu%c", &value, &rest) == 1;
  if (!is_number || value >= 0xffffffffUL) refuse("not a user: ", text);
  return static_cast<uid_t>(value);
}

uid_t user(const char* text) {
  const passwd* entry = getpwnam(text);
  return entry != nullptr ? entry->pw_uid : number(text);
}

void take(int name, char* value, LauncherOptions& options) {
  if (name == 'r') options.rundir = value;
  if (name == 's') options.shepherd = value;
  if (name == 'n') options.interface = value;
  if (name == 'u') options.daemon_user = user(value);
  if (name == 'm') options.min_uid = number(value);
  if (name == 'i' && options.allowed_count == kMaxAllowed) refuse("too many users: ", value);
  if (name == 'i') options.allowed[options.allowed_count++] = number(value);
  if (name == '?') exit(2);
  if (name != 'h' && name != 'v') return;
  fputs(name == 'h' ? kUsage : "scored " SCORE_VERSION "\n", stdout);
  exit(0);
}

void parse(int argc, char** argv, LauncherOptions& options) {
  static const option kOptions[] = {
      {"rundir", 1, nullptr, 'r'},      {"shepherd", 1, nullptr, 's'},
      {"daemon-user", 1, nullptr, 'u'}, {"network-interface", 1, nullptr, 'n'},
      {"min-uid", 1, nullptr, 'm'},     {"allow-uid", 1, nullptr, 'i'},
      {"help", 0, nullptr, 'h'},        {"version", 0, nullptr, 'v'},
      {nullptr, 0, nullptr, 0}};
  options.daemon_user = geteuid();
  int name = 0;
  while ((name = getopt_long(argc, argv, "", kOptions, nullptr)) != -1) take(name, optarg, options);
  if (optind != argc) refuse("unexpected argument ", argv[optind]);
  if (options.rundir == nullptr) refuse("missing ", "--rundir");
  if (options.shepherd == nullptr) refuse("missing ", "--shepherd");
  if (*options.shepherd != '/') refuse("not an absolute path: ", options.shepherd);
  if (access(options.shepherd, X_OK) != 0) refuse("cannot execute ", options.shepherd);
}

// Makes 0 and 1 /dev/null, and also 2 if that is closed, and closes all others. All descriptors
// that are opened later are at least kFirstFd.
bool place_descriptors() {
  closefrom(3);
  int fd = -1;
  do fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (fd >= 0 && fd < kFirstFd - 1);
  if (fcntl(2, F_GETFD) == FD_CLOEXEC) fcntl(2, F_SETFD, 0);
  return fd >= 0 && dup2(fd, 0) == 0 && dup2(fd, 1) == 1;
}

// Keeps only the capabilities that this process uses. The bounding set stays whole, because jobs
// inherit it, and their set-user-id programs need it.
bool give_up_capabilities() {
  constexpr std::uint32_t kept = 1U << CAP_CHOWN | 1U << CAP_DAC_OVERRIDE | 1U << CAP_KILL |
                                 1U << CAP_SETGID | 1U << CAP_SETUID | 1U << CAP_SYS_NICE |
                                 1U << CAP_SYS_RESOURCE;
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct now[2] = {};
  if (syscall(SYS_capget, &header, now) != 0) return false;
  now[0] = {now[0].effective & kept, now[0].permitted & kept, 0};
  now[1] = {};
  return syscall(SYS_capset, &header, now) == 0;
}

// Starts scored-rings, which ends with this process.
StartedShepherd start_rings(const LauncherOptions& options) {
  StartedShepherd rings;
  char path[512] = {};
  if (readlink("/proc/self/exe", path, sizeof path - sizeof "/scored-rings") < 0) return rings;
  snprintf(strrchr(path, '/'), sizeof "/scored-rings", "/scored-rings");
  char owners[32];
  snprintf(owners, sizeof owners, "%u,%d", options.daemon_user, getpid());
  const long child = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &rings.pidfd, 0, 0);
  rings.shepherd = static_cast<pid_t>(child);
  if (child != 0) return rings;
  execl(path, "scored-rings", options.interface, options.rundir, owners, nullptr);
  _exit(127);
}

}  // namespace

int main(int argc, char** argv) {
  static LauncherOptions options;
  parse(argc, argv, options);
  if (!place_descriptors() || !give_up_capabilities()) return 1;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  setpriority(PRIO_PROCESS, 0, -10);  // runs before busy tasks; its children start at 0 again
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  static LauncherServer server(options);
  if (!server.start()) return 1;
  if (options.interface != nullptr) server.add(start_rings(options));
  for (;;) server.turn();
}
