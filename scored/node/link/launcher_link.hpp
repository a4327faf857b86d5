// The node daemon's end of the launcher's socket.
#pragma once

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "scored/launcher/protocol.hpp"

#include <list>
#include <optional>
#include <string>
#include <vector>

namespace score::node {

struct LaunchOrder {
  AttemptId attempt;
  UserId user;
  bool in_cgroups = false;
  bool in_cpu_directory = false;  // the tasks join that too
  bool low_priority = false;
};

struct LaunchedShepherd {
  pid_t shepherd = 0;
  pid_t group = 0;
};

// One thread: the io_context's. Connects when it is first needed and again after a loss; meanwhile
// launches fail and renewals do nothing (the launcher has thawed by then or will).
class LauncherLink {
 public:
  // Both outlive the link; tasks is stopped before it is destroyed.
  LauncherLink(std::string socket_path, Clock& clock, TaskGroup& tasks, asio::any_io_executor io);

  // The lease: the launcher thaws everything if it is not renewed for `lease`; zero: none needed.
  // Wakes no process. False: no launcher there.
  bool renew(Duration lease);
  // `listener` is the shepherd's listening socket; it may be closed afterwards. By value: lives in
  // the coroutine. Errors: errno of the step that failed; Closed: no launcher; Timeout.
  asio::awaitable<Result<LaunchedShepherd>> launch(LaunchOrder order, UniqueFd listener);

  // An Ethernet ring for one rank of a running attempt. One at a time for each attempt. Errors: as
  // launch().
  struct RingPlace {
    std::uint64_t key = 0;
    std::uint32_t rank = 0;
    std::uint16_t channel = 0;
    bool xdp = false;  // if the node can do that
  };

  asio::awaitable<Result<UniqueFd>> open_ring(AttemptId attempt, RingPlace place);
  void forget(AttemptId attempt);
  void close();

 private:
  struct Waiter {
    AttemptId attempt;
    std::optional<launcher::Reply> reply;
    std::vector<UniqueFd> fds;
    asio::steady_timer done;  // at infinity; cancelled when there is a reply, or none will come
  };

  bool connect();
  bool hand_over_lease();
  bool send(const launcher::Request& request, std::span<const int> fds);
  asio::awaitable<void> read_replies(std::uint64_t connection);
  asio::awaitable<Status> wait_for(Waiter* waiter);
  void take(const launcher::Reply& reply, std::vector<UniqueFd> fds);

  std::string path_;
  Clock& clock_;
  TaskGroup& tasks_;
  asio::any_io_executor io_;
  UniqueFd lease_;  // a timer; the launcher has it too
  std::optional<asio::posix::stream_descriptor> socket_;
  std::uint64_t connection_ = 0;  // counts connections
  std::list<Waiter*> waiters_;
};

}  // namespace score::node
