#pragma once
// Serves the sockets of the tasks' PMI servers, with one server per MPI world and one non-blocking
// socket per task. While a task does not read its replies, its requests are not read.
//
// A program that a rank starts inherits the rank's socket. If its MPI library initialises there, it
// would take the rank's place and wait for the other ranks for ever, so the job is ended. The
// kernel names the sender of what is read.

#include "base/os/fd.hpp"
#include "scored/job/pmi/pmi_server.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

class PmiHub {
 public:
  using World = std::uint32_t;  // world 0 has the tasks that the job starts with

  struct Handlers {
    std::function<void(World, const PmiActions::Fence&)> fence;
    std::function<void(const PmiActions::Abort&)> abort;
    std::function<void(std::uint32_t task, const std::string& text)> note;
    std::function<void(std::uint32_t task)> initialised;  // by its MPI library; may be empty
    std::function<void(PmiActions::Spawn&&)> spawn;       // needed if the job may spawn
    std::function<void(PmiActions::Name&&)> name;         // needed if the job may spawn
  };

  // The argument `tasks` is the number of tasks of this node in all worlds. The loop must outlive
  // the hub.
  PmiHub(EventLoop& loop, std::uint32_t tasks, Handlers handlers);
  ~PmiHub();
  PmiHub(const PmiHub&) = delete;
  PmiHub& operator=(const PmiHub&) = delete;

  // Adds a world. members: its tasks on this node, job.local_tasks of them, which are in no other
  // world.
  void add_world(World world, const std::vector<std::uint32_t>& members, PmiJob job);
  // Returns the end of the socket that the task inherits. The task must be in a world. Errors:
  // errno codes.
  base::Result<base::UniqueFd> connect(std::uint32_t task);
  // Errors: as PmiServer::fence_done().
  base::Status fence_done(World world, std::uint64_t sequence, std::string_view key_values);
  // Returns true if no task waits for an answer, and no socket has unread bytes.
  [[nodiscard]] bool is_quiet() const;
  // The state of world 0 for a checkpoint: as PmiServer::saved() and restore().
  [[nodiscard]] std::string saved() const;
  base::Status restore(std::string_view text);
  void spawn_done(std::uint32_t task, bool is_good);
  void name_done(std::uint32_t task, bool is_good, std::string_view port);
  // Handles everything that the task wrote before it ended, then its end.
  void task_ended(std::uint32_t task, bool failed);

 private:
  struct Served {
    PmiServer server;
    std::vector<std::uint32_t> members;  // [index in the server]: task
  };

  struct Connection {
    base::UniqueFd socket;
    pid_t owner = 0;  // the process that has initialised; 0: unknown
    bool has_refused = false;
    std::string out;  // replies that the socket has not accepted yet
    std::optional<World> world;
    std::uint32_t index = 0;  // in the server of its world
  };

  void on_ready(std::uint32_t task, std::uint32_t events);
  bool read_some(std::uint32_t task);  // false: nothing to read, or closed
  [[nodiscard]] bool is_of_another(std::uint32_t task, pid_t sender);
  void refuse(std::uint32_t task, std::string_view bytes);
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
