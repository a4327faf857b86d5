#pragma once
// Implements the PMI-1 server of one MPI world on one node, as a pure object. It takes bytes from
// its tasks and returns replies and actions. It never blocks, never allocates without bound and
// trusts no task.
//
// The server collects the key/value pairs that were put since the last barrier. When every local
// task is in the barrier, they are sent as a Fence, and fence_done() delivers the pairs of all
// nodes. Gets are answered from the local store. If the job has only one node, fences complete at
// once. A barrier does not wait for tasks that have ended, unless their failure is about to end the
// job.
//
// The caller handles names and spawned tasks: a task that requests one waits for name_done() or
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

// This text is shown to users once per job and node, regardless of how their MPI library reports
// the refusal.
inline constexpr const char* kSpawnIsRefused =
    "MPI_Comm_spawn needs room for more tasks: start the job with scrun --spawn N";

struct PmiJob {
  std::string name;        // of the key space; without blanks
  std::uint32_t size = 1;  // ranks of the world
  std::uint32_t local_tasks = 1;
  std::string process_mapping;        // see process_mapping.hpp
  bool keep_going = false;            // a failed task does not end the job
  std::vector<std::uint32_t> apps{};  // [task]: index of its program; if empty, all run the first
  bool can_spawn = false;             // otherwise spawns are refused here
  std::uint32_t universe = 0;         // tasks that there is room for in total; 0: `size`
  std::string key_values{};           // initial contents of the store
  bool takes_long_values = false;     // true if the clients of all tasks of the world do
};

// Actions that the caller must carry out now, in this order.
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
  std::vector<Abort> aborts;               // each ends the whole job
  std::vector<std::uint32_t> closed;       // tasks whose connection must be closed
  std::vector<std::uint32_t> initialised;  // tasks whose MPI library has just initialised
  std::vector<Spawn> spawns;
  std::vector<Name> names;
};

class PmiServer {
 public:
  explicit PmiServer(PmiJob job);

  // Takes bytes from a task's socket. They are ignored if the task's connection was closed.
  PmiActions receive(std::uint32_t task, std::string_view bytes);
  // Completes a fence, once all nodes have entered it. A sequence that is not pending is ignored,
  // because it may be repeated after a reconnection.
  // Errors: BadMessage (not a batch); the state is then unchanged.
  base::Result<PmiActions> fence_done(std::uint64_t sequence, std::string_view key_values);
  // Records that the task's process has ended; `failed` means an exit code other than 0. This may
  // complete a barrier.
  PmiActions task_ended(std::uint32_t task, bool failed);

  // These calls answer Spawn and Name. They are ignored if the task no longer waits for the answer.
  PmiActions spawn_done(std::uint32_t task, bool is_good);
  PmiActions name_done(std::uint32_t task, bool is_good, std::string_view port);

  // Returns true between init and finalize in a world of several ranks. No other process can take
  // the task's place then.
  [[nodiscard]] bool has_joined(std::uint32_t task) const {
    const State state = tasks_[task].state;
    return job_.size > 1 && state != State::Fresh && state != State::Closed;
  }

  // Returns true if no task waits for an answer or is in the middle of a command.
  [[nodiscard]] bool is_quiet() const;

  // Returns what the tasks rely on, for a checkpoint: the name and contents of the key space, and
  // which of them have initialised. The server must be quiet.
  [[nodiscard]] std::string saved() const;
  // Continues from the text of saved(). Fences count from 1 again. Errors: Malformed (also if it
  // has another number of tasks); the state is then unchanged.
  base::Status restore(std::string_view text);

  // Returns the fence that other nodes have not completed yet. It must be sent again after a
  // reconnection.
  [[nodiscard]] const std::optional<PmiActions::Fence>& pending_fence() const { return fence_; }

 private:
  enum class State {
    Fresh,        // has sent no command yet, or has finalized
    Initialised,  // between init and finalize
    InBarrier,    // waits for barrier_out
    Asking,       // waits for spawn_done() or name_done()
    Closed,       // ended, or its connection was closed
  };

  struct Task {
    State state = State::Fresh;
    PmiLineReader reader;
    std::optional<PmiSpawnReader> spawn;         // a spawn that has not been read completely
    bool is_inside_spawn = false;                // between mcmd=spawn and endcmd
    std::optional<PmiActions::Name::Kind> name;  // the name request that waits; nullopt: a spawn
                                                 // waits
    std::size_t bytes_put = 0;
    bool is_passed_over = false;  // barriers do not wait for it
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
  // Returns why the pair may not be put; empty if it may.
  std::string put_error(const Task& task, const PmiCommand& command) const;
  void store(std::string_view key, std::string_view value);
  void try_fence(PmiActions& out);
  void release_barrier(PmiActions& out);

  PmiJob job_;
  std::vector<Task> tasks_;  // [task]
  bool has_refused_spawn_ = false;
  std::unordered_map<std::string, std::string> store_;
  std::vector<const std::string*> keys_;  // into store_, in order of arrival
  std::string gathered_;                  // puts since the last fence, as a batch
  std::uint64_t sequence_ = 0;            // of the last fence that began
  std::optional<PmiActions::Fence> fence_;
};

}  // namespace score::shepherd
