#pragma once
// Starts tasks at the request of programs, on this node. It surrounds a SpawnManager with messages,
// checks and a timer.

#include "proto/node.pb.h"
#include "scored/job/plan/plan.hpp"
#include "scored/job/spawn/spawn_manager.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace score::shepherd {

class SpawnHub {
 public:
  struct Result {
    std::uint32_t world = 0;  // 0: no task was started
    std::string reason;
  };

  using Done = std::function<void(const Result&)>;

  struct Handlers {
    std::function<void(wire::JobRelay&&)> send;  // to node `node_index`
    std::function<void(Plan&& world)> start;     // the callee must call started()
    std::function<void()> closes;                // no more tasks will be started
  };

  // The plan, which is that of the job's first world, and the loop must outlive this object.
  SpawnHub(EventLoop& loop, const Plan& plan, Handlers handlers);
  ~SpawnHub();
  SpawnHub(const SpawnHub&) = delete;
  SpawnHub& operator=(const SpawnHub&) = delete;

  // Handles a request of a task of this node to start programs. key_values: for PMI in the new
  // world.
  void request(std::uint32_t task, std::vector<wire::Program> programs, std::string key_values,
               Done done);
  void started(std::uint32_t world, const std::string& reason);
  // Records that all of the `count` tasks that were started here have ended.
  void idle(std::uint32_t count);
  void receive(std::uint32_t from, const wire::SpawnPeer& message);

  // Refuses all further requests to start tasks here, for the reason `why`.
  void lose(std::string why) { lost_ = std::move(why); }

 private:
  [[nodiscard]] std::string check(const wire::SpawnedWorld& world) const;
  [[nodiscard]] std::string check_request(std::vector<wire::Program>& programs) const;
  void carry_out();
  void start(const wire::SpawnedWorld& world);
  void turn();

  EventLoop& loop_;
  const Plan& plan_;
  Handlers handlers_;
  SpawnManager manager_;
  std::uint64_t last_token_ = 0;
  std::map<std::uint64_t, Done> waiting_;  // [token]
  std::string lost_;
  EventLoop::TimerId timer_ = 0;
};

}  // namespace score::shepherd
