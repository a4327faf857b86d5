#pragma once
// Saves the tasks of this node in the steps that the node daemon orders (docs/adr/0134), and
// restores them. The tasks are stopped by SIGSTOP between the first and the last step; if no order
// comes for a minute, they continue.

#include "proto/checkpoint.pb.h"
#include "scored/job/checkpoint/criu_client.hpp"
#include "scored/job/checkpoint/image_set.hpp"
#include "scored/job/plan/plan.hpp"
#include "scored/job/tasks/task_table.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

class JobCheckpoint {
 public:
  struct Parts {  // all must outlive this object, except the functions
    EventLoop& loop;
    const Plan& plan;
    CriuClient& criu;
    std::function<pid_t()> parent;              // scored-task-parent; 0: none yet
    std::function<std::vector<pid_t>()> tasks;  // [task]; 0: ended
    std::function<std::string()> why_not;       // why they cannot be saved now; empty: they can
    std::function<bool()> is_quiet;             // no task waits for an answer of its servers
    std::function<void(NodeImage&)> describe;   // adds the state of their servers and network
    std::function<void(const wire::ShepherdCheckpointed&)> answer;
    base::Duration forgotten = std::chrono::seconds(60);  // without an order the tasks continue
  };

  explicit JobCheckpoint(Parts parts) : parts_(std::move(parts)) {}

  ~JobCheckpoint() {
    parts_.loop.cancel(timer_);
    parts_.loop.cancel(next_);
  }

  JobCheckpoint(const JobCheckpoint&) = delete;
  JobCheckpoint& operator=(const JobCheckpoint&) = delete;

  // Notes the descriptors with which a task begins.
  void opened(std::uint32_t task, std::span<const base::UniqueFd> fds);

  void order(const wire::ShepherdCheckpoint& order);

  // Asks for a save each time that this long has passed since the last one.
  void keep_saving(base::Duration every);

  // ---- restore

  // Checks the set of a plan that restores. Errors: as ImageSet::check_node().
  static base::Result<NodeImage> check(const Plan& plan);

  using Open = std::function<base::Result<std::vector<base::UniqueFd>>(std::uint32_t task)>;

  struct Ends {
    const Open& open;                           // the descriptors of a task, which are closed then
    base::UniqueFd parent;                      // becomes the socket of scored-task-parent
    std::span<const base::UniqueFd> sockets{};  // of PM, [task][link]
  };

  // Restores the tasks, stopped. `done` is called once.
  static void restore(const Plan& plan, const NodeImage& image, CriuClient& criu, Ends ends,
                      const CriuClient::Done& done);

 private:
  void hold();
  void save();
  void save_when_stopped(std::uint64_t tag, base::TimePoint deadline);
  void run_criu();
  void saved(const base::Status& status);
  void go_on();
  void want_save();
  void reply(const std::string& reason, std::uint64_t bytes = 0);
  void signal_all(int signal) const;
  [[nodiscard]] ImageSet set() const;
  [[nodiscard]] NodeImage describe() const;

  Parts parts_;
  std::vector<NodeImage::Stream> streams_;
  wire::ShepherdCheckpoint order_;  // the last one
  bool is_held_ = false;            // the tasks are stopped
  bool is_busy_ = false;            // criu runs
  int looks_ = 0;                   // at tasks that stood still, and were not quiet
  EventLoop::TimerId timer_ = 0;
  base::Duration every_{0};  // 0: only when a user asks
  EventLoop::TimerId next_ = 0;
};

// Returns the processes of the tree, with its root first.
std::vector<pid_t> processes_below(pid_t root);

}  // namespace score::shepherd
