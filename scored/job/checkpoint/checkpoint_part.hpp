#pragma once
// The part of a shepherd that saves and restores its tasks: it exists in every shepherd, and does
// something only where the launcher has made namespaces for the job.

#include "scored/job/checkpoint/job_checkpoint.hpp"
#include "scored/job/plan/checks.hpp"
#include "scored/job/tasks/spawn_client.hpp"

#include <functional>
#include <optional>
#include <span>
#include <sys/types.h>

namespace score::shepherd {

class CheckpointPart {
 public:
  struct Sockets {
    base::UniqueFd saver;     // scored-checkpoint beside the tasks; empty: they cannot be saved
    base::UniqueFd restorer;  // scored-checkpoint in the tasks' cgroup; empty: they are started
  };

  using Answer = std::function<void(const wire::ShepherdCheckpointed&)>;

  // The loop must outlive this object.
  CheckpointPart(EventLoop& loop, Answer answer, Sockets sockets);

  // Changes what the plan leaves open, and checks the set if the plan restores. Returns the reason
  // if the job cannot start here.
  std::optional<Refusal> prepare(Plan& plan);

  // Returns the saved tasks, after prepare() of a plan that restores.
  [[nodiscard]] const std::optional<NodeImage>& image() const { return image_; }

  [[nodiscard]] bool restores() const { return restores_; }

  struct Job {
    const Plan& plan;               // outlives this object
    std::function<pid_t()> parent;  // as JobCheckpoint
    std::function<std::vector<pid_t>()> tasks;
    std::function<std::string()> why_not;
    std::function<bool()> is_quiet;
    std::function<void(NodeImage&)> describe;
  };

  // Call it when the tasks can be opened.
  void begin(Job job);
  void opened(std::uint32_t task, std::span<const base::UniqueFd> fds);
  void order(const wire::ShepherdCheckpoint& order);

  struct Restore {
    JobCheckpoint::Open open;                 // is called for each task
    SpawnClient& spawner;                     // gets the connection to their parent
    std::span<const base::UniqueFd> sockets;  // of PM, [task][link]
    // Is called with the restored processes, before they continue.
    std::function<base::Status(std::span<const pid_t> processes)> arrived;
    std::function<void(const base::Error&)> failed;
  };

  // Restores the tasks and lets them run.
  void restore(Restore restore);

 private:
  EventLoop& loop_;
  Answer answer_;
  bool is_possible_;
  bool restores_;
  CriuClient saver_;
  CriuClient restorer_;
  std::optional<NodeImage> image_;
  const Plan* plan_ = nullptr;
  std::optional<JobCheckpoint> checkpoint_;
};

}  // namespace score::shepherd
