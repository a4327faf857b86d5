#include "scored/privileged/rings/rings.hpp"

#include "pmlib/devices/ethernet_device.hpp"
#include "pmlib/wire/ebpf.hpp"
#include "scored/privileged/ring_guard/bounds.hpp"
#include "scored/privileged/rings/ring_bounds.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::rings {

namespace {

constexpr const char* kOwnNamespace = "/proc/self/ns/net";
constexpr int kFirstFreeFd = 10;  // above every number that a child uses explicitly
constexpr int kGuardFd = 3;

int open_namespace() {
  const int low = open(kOwnNamespace, O_RDONLY | O_CLOEXEC);
  const int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, kFirstFreeFd);
  if (low >= 0) close(low);
  return fd;
}

// Calls abort() on failure, because it would be worse to continue in the wrong namespace.
void enter(int space) {
  if (setns(space, CLONE_NEWNET) != 0) abort();
}

// Finds scored-ring-guard, which is next to this program.
bool find_guard(char* path, std::size_t size) {
  const ssize_t length = readlink("/proc/self/exe", path, size - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  char* name = strrchr(path, '/') + 1;
  const auto room = static_cast<std::size_t>(path + size - name);
  return static_cast<std::size_t>(snprintf(name, room, "scored-ring-guard")) < room;
}

// Runs the guard, which logs a failure itself. Returns false if it failed.
bool run_guard(const char* program, const char* interface, int space) {
  char own[512];
  if (program == nullptr && find_guard(own, sizeof own)) program = own;
  if (program == nullptr) return false;
  const pid_t child = fork();
  if (child == 0) {
    if (dup2(space, kGuardFd) < 0) _exit(127);
    char descriptor[] = {'0' + kGuardFd, '\0'};
    execl(program, "scored-ring-guard", interface, descriptor, nullptr);
    _exit(127);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

pm::EthernetPlace place_of(const RingRequest& request) {
  return {ring_guard::kRingInterface, static_cast<std::uint16_t>(request.channel), request.rank,
          request.key, ring_generation(request.attempt)};
}

}  // namespace

Rings::~Rings() {
  forget();
}

void Rings::forget() {
  for (int* fd : {&own_, &space_, &table_}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
}

int Rings::make_space(RingFailure& failure) {
  if (own_ < 0) own_ = open_namespace();
  if (own_ < 0 || unshare(CLONE_NEWNET) != 0) {
    return fail(failure, errno, "make the rings' network namespace");
  }
  const int space = open_namespace();
  enter(own_);
  if (space >= 0 && run_guard(guard_, interface_, space)) return space;
  if (space >= 0) close(space);
  return fail(failure, EPERM, "scored-ring-guard failed: see the log");
}

int Rings::open_inside(const RingRequest& request, RingFailure& failure) const {
  const int fd = pm::open_ethernet_socket(place_of(request));
  if (fd < 0) return fail(failure, -fd, "open a ring");
  if (bound_packet_ring(fd, table_, request, failure) == 0) return fd;
  close(fd);
  return -1;
}

bool Rings::prepare(RingFailure& failure) {
  if (space_ < 0) space_ = make_space(failure);
  if (space_ < 0) return false;
  if (table_ < 0) table_ = pm::bpf_open(ring_guard::kTable);
  if (table_ < 0) fail(failure, -table_, "open the table of bounds");
  return table_ >= 0;
}

int Rings::open(const RingRequest& request, RingFailure& failure) {
  const bool was_prepared = space_ >= 0;
  if (prepare(failure)) {
    enter(space_);
    const int fd = open_inside(request, failure);
    enter(own_);
    if (fd >= 0) return fd;
  }
  forget();
  // The interface may have been removed and made again since.
  if (!was_prepared) return -1;
  failure = {};
  return open(request, failure);
}

}  // namespace score::rings
