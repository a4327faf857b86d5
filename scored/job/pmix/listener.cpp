// libpmix creates its listening socket itself and accepts none that exists. For this reason this
// program defines bind() and accept(), which take precedence over those of the C library, so
// libpmix calls them. The socket that libpmix binds is replaced by the existing one, and there is
// nothing to accept until the job is registered. accept() must not wait for that: libpmix 5 calls
// it in the thread that registers the job. libpmix believes a client of TCP its user and rank, so
// accept() closes the connections of all but the job's own processes. Tested by test_mpi.py.
#include "scored/job/pmix/listener.hpp"

#include "scored/job/waiting/own_client.hpp"

#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace {

constexpr int kRetryMs = 1;

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
  if (!admits()) {
    poll(nullptr, 0, kRetryMs);  // libpmix tries again at once
    errno = EAGAIN;
    return -1;
  }
  const int connection = static_cast<int>(syscall(SYS_accept, socket, address, length));
  if (connection < 0 || score::shepherd::is_own_client(connection)) return connection;
  close(connection);
  errno = EAGAIN;
  return -1;
}
