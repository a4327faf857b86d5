#include "scored/privileged/launcher/start.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace score::launcher {

namespace {

// Only root's exec has the capabilities that namespaces need, so scored-checkpoint goes on. It
// finds the descriptors at fixed numbers.
[[noreturn]] void execute_namespaces(const Child& child) {
  const StartRequest& request = child.launch.request;
  char path[PATH_MAX], text[PATH_MAX + kDeniedBytes + 64];
  setpriority(PRIO_PROCESS, 0, 0);
  errno = EPERM;
  must(geteuid() == 0, child, "a launcher of root");
  place_program(child, "scored-checkpoint", path);
  snprintf(text, sizeof text, "%llu %u %u %u %s %s",
           static_cast<unsigned long long>(request.attempt), request.user, request.low_priority,
           request.checkpoint, child.launch.shepherd, request.denied);
  must(dup2(child.notes, kPassedFd) == kPassedFd, child, "dup2");
  for (int i = 0; i < kPlaces; ++i) {
    if (child.launch.places[i] >= 0) dup2(child.launch.places[i], kPassedFd + 1 + i);
  }
  execl(path, "scored-checkpoint", "start", text, nullptr);
  give_up(child, "scored-checkpoint");
}

[[noreturn]] void run_shepherd(Child child) {
  if (child.launch.request.checkpoint != 0) execute_namespaces(child);
  must(setsid() >= 0, child, "setsid");
  setpriority(PRIO_PROCESS, 0, 0);
  must(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, child, "subreaper");
  const StartRequest& request = child.launch.request;
  must((errno = look_up(request.user, child.identity)) == 0, child, kLookUpUser);
  if (request.denied[0] != '\0') assist(child, "scored-device-guard", request.denied);
  char user[16];
  snprintf(user, sizeof user, "%u", request.user);
  if (request.scratch != 0) assist(child, "scored-scratch-directory", user);
  int tasks = -1;
  int helpers = -1;
  const StartReply note{.group = fork_spawner(child, kTasksCgroup, {execute, "spawner"}, tasks)};
  if (request.scratch != 0) fork_spawner(child, kHelpersCgroup, {execute, "helpers"}, helpers);
  must(write(child.notes, &note, sizeof note) == sizeof note, child, "write");
  place_descriptors(child, child.launch.places[kListener], tasks, helpers);
  execute(child, "shepherd");
}

}  // namespace

int start(const Launch& launch, StartedShepherd& started) {
  int notes[2] = {-1, -1};
  if (pipe2(notes, O_CLOEXEC) != 0) return errno;
  started.notes = notes[0];
  const Child child{.launch = launch, .notes = notes[1]};
  started.shepherd = fork_into(child, kShepherdCgroup, &started.pidfd);
  const int failed = started.shepherd < 0 ? errno : 0;
  if (started.shepherd == 0) run_shepherd(child);
  close(notes[1]);
  if (failed != 0) close(notes[0]);
  return failed;
}

}  // namespace score::launcher
