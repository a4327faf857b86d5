// Tested by test_mpi.py. libpmix makes its listening socket itself and takes none that exists.
// bind() and accept() of this program stand before the C library's, so libpmix calls them. The
// socket that it wants to bind is replaced by the one that it should have, and the thread in which
// it accepts connections waits until the job is registered.
#include "scored/job/pmix/listener.hpp"

#include <atomic>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace {

int& listener() {
  static int descriptor = -1;
  return descriptor;
}

std::atomic<bool>& admits() {
  static std::atomic<bool> value = true;
  return value;
}

}  // namespace

namespace score::pmix {

void adopt_listener(int descriptor) {
  listener() = descriptor;
  admits() = false;
}

void admit_clients() {
  admits() = true;
  admits().notify_all();
}

}  // namespace score::pmix

int bind(int socket, const sockaddr* address, socklen_t length) noexcept {
  if (listener() < 0 || address->sa_family != AF_INET) {
    return static_cast<int>(syscall(SYS_bind, socket, address, length));
  }
  const int adopted = std::exchange(listener(), -1);
  const int put = dup3(adopted, socket, O_CLOEXEC);
  close(adopted);
  return put < 0 ? -1 : 0;
}

int accept(int socket, sockaddr* address, socklen_t* length) {
  admits().wait(false);
  return static_cast<int>(syscall(SYS_accept, socket, address, length));
}
