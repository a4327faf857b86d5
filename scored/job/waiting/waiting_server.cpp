#include "scored/job/waiting/waiting_server.hpp"

#include "base/os/spawn.hpp"
#include "proto/frames/frame_reader.hpp"
#include "proto/shepherd.pb.h"
#include "scored/job/waiting/own_client.hpp"

#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

std::uint16_t port_of_listener() {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(kServerListenerFd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// Returns true if a task has connected. Its connection stays in the queue for the server. If no
// client in the queue is our own, then neither is the first one, which is closed.
bool is_wanted(std::uint16_t port) {
  if (has_own_client(port)) return true;
  close(accept4(kServerListenerFd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  return false;
}

// Returns true when the shepherd wants the server, and false if it has ended.
bool wait_until_needed() {
  const std::uint16_t port = port_of_listener();
  std::array<pollfd, 2> ready{{{kServerSocketFd, POLLIN, 0}, {kServerListenerFd, POLLIN, 0}}};
  while (true) {
    if (poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return false;
    char byte = 0;
    if (ready[0].revents != 0) return recv(kServerSocketFd, &byte, 1, MSG_PEEK) == 1;
    if (ready[1].revents == 0 || !is_wanted(port)) continue;
    ready[1].fd = -1;
    const auto wanted = proto::encode_frame_bytes(proto::frame_type<wire::PmixWanted>(), "");
    if (!base::write_all(kServerSocketFd, wanted)) return false;
  }
}

// libpmix keeps its data in plain tables and hwloc loads no plugins. This halves the start-up cost
// and needs no files in shared memory.
[[noreturn]] void become_server() {
  rlimit descriptors{};  // it needs one per task
  if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
    descriptors.rlim_cur = descriptors.rlim_max;
    setrlimit(RLIMIT_NOFILE, &descriptors);
  }
  std::string name = "scored-pmix";
  const std::string path = (base::own_directory() / name).string();
  std::array<std::string, 3> variables{"PATH=/usr/bin:/bin", "PMIX_MCA_gds=hash",
                                       "HWLOC_PLUGINS_PATH=/nonexistent"};
  std::array<char*, 4> environment{variables[0].data(), variables[1].data(), variables[2].data(),
                                   nullptr};
  std::array<char*, 2> argv{name.data(), nullptr};
  execve(path.c_str(), argv.data(), environment.data());
  _exit(127);
}

}  // namespace

bool fork_waiting_server(std::span<const base::UniqueFd> descriptors) {
  const pid_t pid = fork();
  if (pid != 0) return pid > 0;
  setsid();  // signals to the tasks' group do not concern it
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  if (chdir("/") != 0 || dup2(descriptors[0].get(), kServerSocketFd) < 0 ||
      dup2(descriptors[1].get(), kServerListenerFd) < 0) {
    _exit(1);
  }
  closefrom(kServerListenerFd + 1);
  if (!wait_until_needed()) _exit(0);
  become_server();
}

}  // namespace score::shepherd
