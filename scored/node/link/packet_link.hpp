// Connects to one of the node's helpers that run as root (launcher, rings). Packets have a fixed
// length, and each is answered by a launcher::StartReply.
#pragma once

#include "base/async/asio.hpp"
#include "base/async/task_group.hpp"
#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "scored/privileged/launcher/protocol.hpp"

#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace score::node {

// It connects when it is first needed, and again after a loss. Thread: the io_context's.
class PacketLink {
 public:
  // `name` is the helper's name. `tasks` must outlive the link, and is stopped before the link is
  // destroyed.
  PacketLink(std::string name, std::string socket_path, TaskGroup& tasks, asio::any_io_executor io);

  struct Answer {
    launcher::StartReply reply;
    std::vector<UniqueFd> fds;
  };

  // Waits until it is connected, for example while the helper is being restarted. Returns false if
  // that takes longer than `limit`.
  asio::awaitable<bool> reach(Duration limit);
  // Asks the helper; only one request at a time per attempt. The request is copied before this
  // returns, and the descriptors may be closed then. Errors: errno of the step that failed; Closed
  // (no helper there); Timeout.
  asio::awaitable<Result<Answer>> ask(AttemptId attempt, std::span<const std::byte> request,
                                      std::span<const int> fds);
  void close();

 private:
  struct Waiter {
    AttemptId attempt;
    std::optional<launcher::StartReply> reply;
    std::vector<UniqueFd> fds;
    asio::steady_timer done;  // at the time limit; cancelled by a reply or a lost connection
  };

  bool connect();
  asio::awaitable<Result<Answer>> wait_for(AttemptId attempt, bool is_sent);
  asio::awaitable<void> read_replies(std::uint64_t connection);
  void take(const launcher::StartReply& reply, std::vector<UniqueFd> fds);

  std::string name_;
  std::string path_;
  TaskGroup& tasks_;
  asio::any_io_executor io_;
  std::optional<asio::posix::stream_descriptor> socket_;
  std::uint64_t connection_ = 0;  // counts connections
  std::list<Waiter*> waiters_;
};

}  // namespace score::node
