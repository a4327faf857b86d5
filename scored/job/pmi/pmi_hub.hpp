#pragma once
// The sockets of the tasks' PMI servers, one per MPI world: one socket to each task, non-blocking.
// While a task does not read its replies, its requests are not read.

#include "base/os/fd.hpp"
#include "scored/job/pmi/pmi_server.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::shepherd {

class PmiHub {
 public:
  using World = std::uint32_t;  // 0: of the tasks that the job has started with

  struct Handlers {
    std::function<void(World, const PmiActions::Fence&)> fence;
    std::function<void(const PmiActions::Abort&)> abort;
    std::function<void(std::uint32_t task, const std::string& text)> note;
    std::function<void(std::uint32_t task)> initialised;  // its MPI library has begun; may be empty
    std::function<void(PmiActions::Spawn&&)> spawn;       // where the job may spawn
    std::function<void(PmiActions::Name&&)> name;         // likewise
  };

  // tasks: of this node, in all worlds. The loop must outlive the hub.
  PmiHub(EventLoop& loop, std::uint32_t tasks, Handlers handlers);
  ~PmiHub();
  PmiHub(const PmiHub&) = delete;
  PmiHub& operator=(const PmiHub&) = delete;

  // members: its tasks on this node, which are in no other world; job.local_tasks of them.
  void add_world(World world, const std::vector<std::uint32_t>& members, PmiJob job);
  // The end that the task inherits, which is in a world. Errors: errno codes.
  base::Result<base::UniqueFd> connect(std::uint32_t task);
  // Errors: of PmiServer.
  base::Status fence_done(World world, std::uint64_t sequence, std::string_view key_values);
  void spawn_done(std::uint32_t task, bool is_good);
  void name_done(std::uint32_t task, bool is_good, std::string_view port);
  // What the task wrote before it ended is heard first.
  void task_ended(std::uint32_t task, bool failed);

  // Of the job's first world.
  [[nodiscard]] const std::optional<PmiActions::Fence>& pending_fence() const;

 private:
  struct Served {
    PmiServer server;
    std::vector<std::uint32_t> members;  // [index in the server]: task
  };

  struct Connection {
    base::UniqueFd socket;
    std::string out;  // replies that did not fit yet
    std::optional<World> world;
    std::uint32_t index = 0;  // in its world's server
  };

  void on_ready(std::uint32_t task, std::uint32_t events);
  bool read_some(std::uint32_t task);  // false: nothing there, or closed
  void write_out(std::uint32_t task);
  void carry_out(World world, PmiActions actions);
  void send_replies(const std::vector<PmiActions::Reply>& replies);
  void close(std::uint32_t task);
  PmiServer& server_of(std::uint32_t task);

  EventLoop& loop_;
  std::map<World, Served> worlds_;
  Handlers handlers_;
  std::vector<Connection> connections_;  // [task]
};

}  // namespace score::shepherd
