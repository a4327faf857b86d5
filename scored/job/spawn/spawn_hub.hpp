#pragma once
// Tasks that programs start, on this node: SpawnDesk with messages, checks and a timer around it.

#include "proto/node.pb.h"
#include "scored/job/plan/plan.hpp"
#include "scored/job/spawn/spawn_desk.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace score::shepherd {

class SpawnHub {
 public:
  struct Result {
    std::uint32_t world = 0;  // 0: nothing was started
    std::string reason;
  };

  using Done = std::function<void(const Result&)>;

  struct Handlers {
    std::function<void(wire::JobRelay&&)> send;  // to node `node_index`
    std::function<void(Plan&& world)> start;     // ends in a call of started()
    std::function<void()> closes;                // nothing more will be started
  };

  // The plan, of the job's first world, and the loop must outlive it.
  SpawnHub(EventLoop& loop, const Plan& plan, Handlers handlers);
  ~SpawnHub();
  SpawnHub(const SpawnHub&) = delete;
  SpawnHub& operator=(const SpawnHub&) = delete;

  // A task of this node wants to start programs. key_values: of the new world's PMI.
  void request(std::uint32_t task, std::vector<wire::Program> programs, std::string key_values,
               Done done);
  void started(std::uint32_t world, const std::string& reason);
  // All of the `count` tasks that were started here have ended.
  void idle(std::uint32_t count);
  void receive(std::uint32_t from, const wire::SpawnPeer& message);

  // Nothing can be started here any more.
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
  SpawnDesk desk_;
  std::uint64_t last_token_ = 0;
  std::map<std::uint64_t, Done> waiting_;  // [token]
  std::string lost_;
  EventLoop::TimerId timer_ = 0;
};

}  // namespace score::shepherd
