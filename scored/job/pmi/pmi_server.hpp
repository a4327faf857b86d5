#pragma once
// One node's PMI-1 server of one MPI world, as a pure object: bytes of its tasks in, replies and
// actions out.
// Nothing here blocks, allocates without bound or trusts a task.
//
// Key/value pairs put since the last barrier are gathered; when every local task is in the barrier
// they leave as a Fence, and fence_done() brings what all nodes gathered. Gets are answered from
// the local store. On a job's only node fences end at once. A barrier does not wait for tasks that
// have ended, unless their failure is about to end the job.
//
// Names and spawned tasks are the shell's business: a task that asks waits for name_done() or
// spawn_done().
//
// "task" is a local index, 0 ... local_tasks - 1.

#include "base/result.hpp"
#include "scored/job/pmi/pmi_line.hpp"
#include "scored/job/pmi/pmi_spawn.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace score::shepherd {

// Shown to users once per job and node, whatever their MPI makes of the refusal.
inline constexpr const char* kSpawnIsRefused =
    "MPI_Comm_spawn needs room for more tasks: start the job with scrun --spawn N";

struct PmiJob {
  std::string name;        // of the key space; without blanks
  std::uint32_t size = 1;  // ranks of the world
  std::uint32_t local_tasks = 1;
  std::string process_mapping;        // see process_mapping.hpp
  bool keep_going = false;            // a failed task does not end the job
  std::vector<std::uint32_t> apps{};  // [task]: which of the job's programs; empty: all the first
  bool can_spawn = false;             // else spawning is refused here
  std::uint32_t universe = 0;         // tasks that there is room for in all; 0: `size`
  std::string key_values{};           // in the store from the start
  bool takes_long_values = false;     // the clients of all tasks of the world
};

// What the shell must do now, in this order.
struct PmiActions {
  struct Reply {
    std::uint32_t task;
    std::string bytes;
  };

  struct Fence {
    std::uint64_t sequence = 0;  // 1, 2 ...
    std::string key_values;      // proto/frames/key_values.hpp
    friend bool operator==(const Fence&, const Fence&) = default;
  };

  struct Abort {
    std::uint32_t task;
    std::int32_t code;
    std::string message;
  };

  struct Note {  // one line for the user, about a task
    std::uint32_t task;
    std::string text;
  };

  struct Spawn {
    std::uint32_t task;
    PmiSpawn what;
  };

  struct Name {
    enum class Kind { Publish, Unpublish, Lookup };
    std::uint32_t task;
    Kind kind;
    std::string service;
    std::string port;  // Publish
  };

  std::vector<Reply> replies;
  std::vector<Note> notes;
  std::optional<Fence> fence;              // to the other nodes
  std::vector<Abort> aborts;               // the whole job is to end
  std::vector<std::uint32_t> closed;       // tasks whose connection is to be closed
  std::vector<std::uint32_t> initialised;  // tasks whose MPI library has just begun
  std::vector<Spawn> spawns;
  std::vector<Name> names;
};

class PmiServer {
 public:
  explicit PmiServer(PmiJob job);

  // Bytes from a task's socket. Ignored when its connection was closed.
  PmiActions receive(std::uint32_t task, std::string_view bytes);
  // All nodes are in. A sequence that is not waited for is ignored (a repeat after a reconnection).
  // Errors: BadMessage (not a batch); nothing has changed then.
  base::Result<PmiActions> fence_done(std::uint64_t sequence, std::string_view key_values);
  // The task's process is gone; `failed`: not with exit code 0. A barrier may end by this.
  PmiActions task_ended(std::uint32_t task, bool failed);

  // Answers to Spawn and Name. Ignored if the task does not wait for it any more.
  PmiActions spawn_done(std::uint32_t task, bool is_good);
  PmiActions name_done(std::uint32_t task, bool is_good, std::string_view port);

  // The fence that other nodes have not completed yet: to be sent again after a reconnection.
  [[nodiscard]] const std::optional<PmiActions::Fence>& pending_fence() const { return fence_; }

 private:
  enum class State {
    Fresh,        // not a word yet, or finalized
    Initialised,  // between init and finalize
    InBarrier,    // waits for barrier_out
    Asking,       // waits for spawn_done() or name_done()
    Closed,       // ended, or its connection was closed
  };

  struct Task {
    State state = State::Fresh;
    PmiLineReader reader;
    std::optional<PmiSpawnReader> spawn;         // a spawn that has not been read whole
    bool is_inside_spawn = false;                // between mcmd=spawn and endcmd
    std::optional<PmiActions::Name::Kind> name;  // what is asked; nothing: a spawn
    std::size_t bytes_put = 0;
    bool is_passed_over = false;  // by barriers
  };

  using Handler = void (PmiServer::*)(std::uint32_t task, const PmiCommand&, PmiActions&);

  static Handler handler_of(std::string_view name);
  void handle_line(std::uint32_t task, std::string_view line, PmiActions& out);
  void handle_spawn_line(std::uint32_t task, std::string_view line, PmiActions& out);
  void close(std::uint32_t task, const std::string& why, PmiActions& out);
  void reply(std::uint32_t task, std::string bytes, PmiActions& out);

  void on_init(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_get_maxes(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_get_appnum(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_get_universe_size(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_get_my_kvsname(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_put(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_get(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_getbyidx(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_barrier_in(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_finalize(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_abort(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_name(std::uint32_t task, const PmiCommand& command, PmiActions& out);
  void on_unsupported(std::uint32_t task, const PmiCommand& command, PmiActions& out);

  std::size_t value_max() const;
  // Why the pair may not be put, or nothing.
  std::string put_error(const Task& task, const PmiCommand& command) const;
  void store(std::string_view key, std::string_view value);
  void try_fence(PmiActions& out);
  void release_barrier(PmiActions& out);

  PmiJob job_;
  std::vector<Task> tasks_;  // [task]
  bool has_refused_spawn_ = false;
  std::unordered_map<std::string, std::string> store_;
  std::vector<const std::string*> keys_;  // of store_, in the order they came
  std::string gathered_;                  // batch of puts since the last fence
  std::uint64_t sequence_ = 0;            // of the last fence begun
  std::optional<PmiActions::Fence> fence_;
};

}  // namespace score::shepherd
