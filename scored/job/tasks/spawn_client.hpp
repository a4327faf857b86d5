#pragma once
// A's side of spawn_wire.hpp: hands the tasks' descriptors to the spawner batch by batch and
// gathers the pids. Never waits: the spawner may be frozen for as long as the timetable likes.

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
    // Descriptors of one task, in order. Errors: errno codes; the start fails then.
    std::function<base::Result<std::vector<base::UniqueFd>>(std::uint32_t task)> open_task;
    std::function<void(std::uint32_t task, pid_t pid)> forked;
    std::function<void()> all_forked;
    std::function<void(const base::Error& why)> failed;  // no more tasks will be forked
  };

  // The loop must outlive the client.
  SpawnClient(EventLoop& loop, base::UniqueFd socket);

  ~SpawnClient() { close(); }

  SpawnClient(const SpawnClient&) = delete;
  SpawnClient& operator=(const SpawnClient&) = delete;

  base::Status start(Handlers handlers);
  // The spawner reads the plan ahead of time. plan_bytes: of ShepherdPrepare. stays: another plan
  // may follow when all tasks of this one are forked.
  base::Status prepare(std::string_view plan_bytes, bool stays = false);
  // `count` tasks from `first` on are to be forked. After prepare(), once for each plan.
  void begin(std::uint32_t first, std::uint32_t count);
  // Forgets the spawner: nothing more is called.
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
  base::UniqueFd plan_;  // memfd, until it was sent
  bool stays_ = false;
  bool has_begun_ = false;    // begin() was called for this plan
  bool is_last_ = false;      // the last tasks of this plan were asked for
  std::uint32_t end_ = 0;     // of this plan's tasks
  std::uint32_t forked_ = 0;  // tasks before this one have a process
  std::uint32_t asked_ = 0;   // tasks before this one were asked for
  bool greeted_ = false;      // the spawner's Hello came
  bool ready_ = false;        // it has the plan
};

}  // namespace score::shepherd
