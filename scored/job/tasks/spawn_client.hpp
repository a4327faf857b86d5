#pragma once
// Implements A's side of spawn_wire.hpp. It passes the tasks' descriptors to the spawner batch by
// batch and collects the pids. It never waits, because the spawner may be frozen for any length of
// time.

#include "base/os/fd.hpp"
#include "scored/job/tasks/event_loop.hpp"
#include "scored/job/tasks/spawn_wire.hpp"

#include <functional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

class SpawnClient {
 public:
  struct Handlers {
    std::function<void(pid_t pid)> hello;
    // Returns the descriptors of one task, in order. Errors: errno codes; the start then fails.
    std::function<base::Result<std::vector<base::UniqueFd>>(std::uint32_t task)> open_task;
    std::function<void(std::uint32_t task, pid_t pid)> forked;
    std::function<void()> all_forked;
    std::function<void(const base::Error& why)> failed;  // no more tasks will be forked
    // A child of scored-task-parent has ended. The report is the word of the user's process.
    std::function<void(const SpawnReply& report)> ended{};
  };

  // The loop must outlive the client. Without a socket it waits for adopt().
  SpawnClient(EventLoop& loop, base::UniqueFd socket);

  ~SpawnClient() { close(); }

  SpawnClient(const SpawnClient&) = delete;
  SpawnClient& operator=(const SpawnClient&) = delete;

  base::Status start(Handlers handlers);
  // Sends the plan, which the spawner reads ahead of time. plan_bytes: a ShepherdPrepare. stays:
  // another plan may follow when all tasks of this one are forked. server: the descriptors of a
  // server that waits, or none.
  base::Status prepare(std::string_view plan_bytes, bool stays = false,
                       std::vector<base::UniqueFd> server = {});
  // Starts to fork `count` tasks from `first` on. Call it after prepare(), once per plan.
  void begin(std::uint32_t first, std::uint32_t count);

  // Keeps the connection after the last task is forked: the spawner becomes scored-task-parent.
  void keep_parent() { has_parent_ = true; }

  // Takes the connection to a restored scored-task-parent, whose tasks these are.
  base::Status adopt(base::UniqueFd socket, std::span<const pid_t> tasks);
  // Closes the connection to the spawner; no handler is called any more.
  void close();

 private:
  void on_ready();
  void on_reply(const SpawnReply& reply);
  void take_pids(const SpawnReply& reply);
  void send_plan();
  void request_next();
  base::Status send_batch(std::uint32_t count);
  void give_up(const base::Error& why);

  EventLoop& loop_;
  base::UniqueFd socket_;
  Handlers handlers_;
  std::vector<base::UniqueFd> plan_;  // memfd and the server's, until they have been sent
  bool stays_ = false;
  bool has_parent_ = false;
  bool has_begun_ = false;    // begin() was called for this plan
  bool is_last_ = false;      // the last tasks of this plan were requested
  std::uint32_t end_ = 0;     // one past this plan's last task
  std::uint32_t forked_ = 0;  // tasks before this one have a process
  std::uint32_t asked_ = 0;   // tasks before this one were requested
  bool greeted_ = false;      // the spawner's Hello has arrived
  bool ready_ = false;        // it has the plan
};

}  // namespace score::shepherd
