#include "scored/privileged/checkpoint/attempt.hpp"

#include "scored/privileged/checkpoint/protocol.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace score::checkpoint {

namespace {

using launcher::Child;
using launcher::must;

constexpr int kRestores = 2;  // see launcher::StartRequest::checkpoint

const char* criu() {
  const char* const named = getenv("SCORED_CRIU");
  return named != nullptr ? named : "/usr/sbin/criu";
}

void check_criu(const Child& child) {
  struct stat status {};

  must(stat(criu(), &status) == 0, child, "criu 4.1 or later, which is missing");
  errno = EPERM;
  must(status.st_uid == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0, child,
       "criu, which others may change");
}

// Runs scored-checkpoint as the user with the two capabilities that criu needs. Root's own jobs
// keep what root has.
[[noreturn]] void execute_server(const Child& child, const char* /*role*/) {
  constexpr unsigned kTwo[] = {CAP_SETPCAP, CAP_CHECKPOINT_RESTORE};
  char path[PATH_MAX], program[PATH_MAX];
  launcher::place_program(child, "scored-checkpoint", path);
  snprintf(program, sizeof program, "%s", criu());
  launcher::reset_state(child);
  must(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0, child, "keep capabilities");
  if (const char* failed = launcher::become(child.identity)) launcher::give_up(child, failed);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  for (const unsigned one : kTwo) data[one / 32].permitted |= 1U << (one % 32);
  for (auto& half : data) half.effective = half.inheritable = half.permitted;
  const bool is_root = child.identity.uid == 0;
  must(is_root || syscall(SYS_capset, &header, data) == 0, child, "keep two capabilities");
  for (const unsigned one : kTwo) {
    const bool is_passed = is_root || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, one, 0, 0) == 0;
    must(is_passed, child, "pass on two capabilities");
  }
  const char* argv[] = {"scored-checkpoint", "serve", program, nullptr};
  execve(path, const_cast<char* const*>(argv), child.identity.environment);
  launcher::give_up(child, "exec scored-checkpoint");
}

// The steps of a child place descriptors at numbers below kFirstFd, so no other may be there.
bool occupy_numbers() {
  int fd = -1;
  do fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (fd >= 0 && fd < launcher::kFirstFd - 1);
  // criu saves no file of the mount namespace outside.
  return fd >= 0 && dup2(fd, STDIN_FILENO) >= 0 && dup2(fd, STDOUT_FILENO) >= 0;
}

// Restored processes have the ids that they had, which must be free then.
void reserve_process_ids(const Child& child) {
  const int last = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  must(last >= 0 && dprintf(last, "%d", kFirstPid) > 0, child, "reserve process ids");
  close(last);
}

}  // namespace

bool take_launch(launcher::Launch& launch, const char* text) {
  static char shepherd[PATH_MAX];
  launcher::StartRequest& request = launch.request;
  unsigned long long attempt = 0;
  unsigned low = 0, checkpoint = 0;
  int used = 0;
  static_assert(PATH_MAX == 4096);
  const bool is_whole = sscanf(text, "%llu %u %u %u %4095s %n", &attempt, &request.user, &low,
                               &checkpoint, shepherd, &used) == 5;
  request.attempt = attempt;
  request.low_priority = static_cast<std::uint16_t>(low);
  request.checkpoint = static_cast<std::uint8_t>(checkpoint);
  if (!is_whole || strlen(text + used) >= launcher::kDeniedBytes) return false;
  snprintf(request.denied, launcher::kDeniedBytes, "%s", text + used);
  launch.shepherd = shepherd;
  for (int i = 0; i <= launcher::kPlaces; ++i) {
    const int fd = launcher::kPassedFd + i;
    const bool is_there = fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
    if (i > 0) launch.places[i - 1] = is_there ? fd : -1;
  }
  return true;
}

void run_attempt(const launcher::Launch& launch, pid_t outside) {
  Child child{.launch = launch, .notes = launcher::kPassedFd};
  const launcher::StartRequest& request = launch.request;
  const bool restores = request.checkpoint == kRestores;
  char waits[16];
  snprintf(waits, sizeof waits, "%d", outside);
  must(occupy_numbers(), child, "open /dev/null");
  check_criu(child);
  must(setsid() >= 0, child, "setsid");
  must((errno = launcher::look_up(request.user, child.identity)) == 0, child,
       launcher::kLookUpUser);
  if (request.denied[0] != '\0') launcher::assist(child, "scored-device-guard", request.denied);
  int tasks = -1;
  int server = -1;
  fork_spawner(child, launcher::kHelpersCgroup, {execute_server, nullptr}, server);
  if (!restores) reserve_process_ids(child);
  const launcher::Program spawner{restores ? execute_server : launcher::execute, "spawner"};
  const launcher::StartReply note{.group =
                                      fork_spawner(child, launcher::kTasksCgroup, spawner, tasks)};
  must(write(child.notes, &note, sizeof note) == sizeof note, child, "write");
  place_descriptors(child, launch.places[launcher::kListener], tasks, server);
  child.outside = waits;
  child.restores = restores ? "restore" : nullptr;
  launcher::execute(child, "shepherd");
}

void fail_attempt(const char* step) {
  const launcher::Launch none{};
  launcher::give_up({.launch = none, .notes = launcher::kPassedFd}, step);
}

}  // namespace score::checkpoint
