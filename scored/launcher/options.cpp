#include "scored/launcher/options.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <pwd.h>
#include <unistd.h>

namespace score::launcher {

namespace {

constexpr const char* kUsage =
    "usage: scored-launcher --rundir DIR --cgroup-root DIR|auto|none --shepherd PATH\n"
    "                       [--daemon-user USER] [--network-interface NAME] [--allow-root]\n"
    "\n"
    "Starts the jobs' shepherds as their users, for the node daemon that connects to\n"
    "DIR/launcher.sock, and lets every job go on when that daemon falls silent.\n"
    "\n"
    "  --rundir DIR         directory of the socket\n"
    "  --cgroup-root DIR    below it are the job_ATTEMPT directories; auto: the cgroup that\n"
    "                       the node daemon is in; none: process groups\n"
    "  --shepherd PATH      absolute path of scored-shepherd\n"
    "  --daemon-user USER   the only one who may connect (default: the own one)\n"
    "  --network-interface NAME\n"
    "                       open Ethernet rings for jobs' networks there\n"
    "  --allow-root         start jobs of uid 0 too (a one-user cluster of root)\n"
    "  --help               print this help and exit\n"
    "  --version            print the version and exit\n";

// A user's number or name.
bool parse_user(const char* text, uid_t& uid) {
  if (const passwd* entry = getpwnam(text); entry != nullptr) {
    uid = entry->pw_uid;
    return true;
  }
  char* end = nullptr;
  errno = 0;
  const unsigned long value = strtoul(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || *text == '-' || value >= 0xffffffffUL) {
    return false;
  }
  uid = static_cast<uid_t>(value);
  return true;
}

bool complain(const char* what, const char* value) {
  fprintf(stderr, "scored-launcher: %s%s (--help lists the options)\n", what, value);
  return false;
}

bool take(int option, char* value, Options& options) {
  switch (option) {
    case 'r':
      options.rundir = value;
      return true;
    case 'c':
      options.cgroup_root = strcmp(value, "none") == 0 ? nullptr : value;
      return true;
    case 's':
      options.shepherd = value;
      return true;
    case 'a':
      options.allow_root = true;
      return true;
    case 'n':
      options.interface = value;
      return true;
    case 'u':
      return parse_user(value, options.daemon_user) || complain("not a user: ", value);
    default:
      return complain("bad command line", "");
  }
}

bool complete(const Options& options, bool has_cgroup_root) {
  if (options.rundir == nullptr) return complain("missing --rundir", "");
  if (!has_cgroup_root) return complain("missing --cgroup-root", "");
  if (options.shepherd == nullptr) return complain("missing --shepherd", "");
  if (options.shepherd[0] != '/') return complain("not an absolute path: ", options.shepherd);
  if (access(options.shepherd, X_OK) != 0) return complain("cannot execute ", options.shepherd);
  return true;
}

}  // namespace

Parsed parse_options(int argc, char** argv, Options& options) {
  static const option kOptions[] = {{"rundir", required_argument, nullptr, 'r'},
                                    {"cgroup-root", required_argument, nullptr, 'c'},
                                    {"shepherd", required_argument, nullptr, 's'},
                                    {"daemon-user", required_argument, nullptr, 'u'},
                                    {"network-interface", required_argument, nullptr, 'n'},
                                    {"allow-root", no_argument, nullptr, 'a'},
                                    {"help", no_argument, nullptr, 'h'},
                                    {"version", no_argument, nullptr, 'v'},
                                    {nullptr, 0, nullptr, 0}};
  options.daemon_user = geteuid();
  bool has_cgroup_root = false;
  for (int got = 0; (got = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    if (got == 'h' || got == 'v') {
      fputs(got == 'h' ? kUsage : "scored " SCORE_VERSION "\n", stdout);
      return Parsed::Help;
    }
    has_cgroup_root = has_cgroup_root || got == 'c';
    if (!take(got, optarg, options)) return Parsed::Bad;
  }
  if (optind != argc) {
    complain("unexpected argument ", argv[optind]);
    return Parsed::Bad;
  }
  return complete(options, has_cgroup_root) ? Parsed::Run : Parsed::Bad;
}

}  // namespace score::launcher
