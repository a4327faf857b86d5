// This module is tested by test_spawn.py, because it needs real MPI libraries.
#include "scored/job/spawn/spawn_hub.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "scored/job/plan/checks.hpp"

#include <utility>

namespace score::shepherd {

namespace {

namespace limits = base::limits;

constexpr base::Duration kHubTurn = std::chrono::seconds{1};

}  // namespace

SpawnHub::SpawnHub(EventLoop& loop, const Plan& plan, Handlers handlers)
    : loop_(loop),
      plan_(plan),
      handlers_(std::move(handlers)),
      manager_({plan.prepare.node_index(), plan.nodes_of_tasks(), plan.spec.spawn()}) {}

SpawnHub::~SpawnHub() {
  loop_.cancel(timer_);
}

// A task's request is as hostile as a submission, and has the same limits.
std::string SpawnHub::check_request(std::vector<wire::Program>& programs) const {
  std::size_t words = 0;
  std::size_t bytes = 0;
  for (auto& program : programs) {
    if (program.argv().empty() || program.argv(0).empty())
      return "MPI_Comm_spawn without a program";
    words += static_cast<std::size_t>(program.argv_size() + program.env_size());
    bytes += program.ByteSizeLong();
    auto& directory = *program.mutable_directory();
    if (directory.size() > limits::kMaxPathBytes) return "MPI_Comm_spawn in too long a path";
    if (!directory.empty() && !directory.starts_with('/')) {
      directory = plan_.spec.directory() + "/" + directory;
    }
  }
  const bool is_large = words > limits::kMaxSpawnWords || bytes > limits::kMaxSpawnBytes;
  return is_large ? "MPI_Comm_spawn with too many arguments" : "";
}

void SpawnHub::request(std::uint32_t task, std::vector<wire::Program> programs,
                       std::string key_values, Done done) {
  if (const auto reason = check_request(programs); !reason.empty()) return done({0, reason});
  wire::SpawnedWorld world;
  for (auto& program : programs) *world.add_programs() = std::move(program);
  world.set_key_values(std::move(key_values));
  world.set_parent(plan_.rank_of(task));
  waiting_[++last_token_] = std::move(done);
  manager_.request(last_token_, std::move(world), base::monotonic_now());
  carry_out();
}

std::string SpawnHub::check(const wire::SpawnedWorld& world) const {
  if (!lost_.empty()) return lost_;
  const auto plan = plan_of_world(plan_, world);
  if (!plan) return plan.error().message();
  const auto refusal = check_plan(*plan);
  if (!refusal) return {};
  return base::escape_terminal(plan_.prepare.node_name() + ": " + refusal->reason,
                               limits::kMaxErrorTextBytes);
}

void SpawnHub::started(std::uint32_t world, const std::string& reason) {
  manager_.started(world, reason);
  carry_out();
}

void SpawnHub::idle(std::uint32_t count) {
  manager_.idle(count);
  carry_out();
}

void SpawnHub::receive(std::uint32_t from, const wire::SpawnPeer& message) {
  manager_.receive(from, message);
  carry_out();
}

void SpawnHub::carry_out() {
  auto actions = manager_.take_actions();
  while (actions.check) {
    manager_.checked(actions.check->number(), check(*actions.check));
    auto more = manager_.take_actions();
    for (auto& message : more.messages) actions.messages.push_back(std::move(message));
    for (auto& answer : more.answers) actions.answers.push_back(std::move(answer));
    actions.check = std::move(more.check);
    if (more.start) actions.start = std::move(more.start);
    actions.closes = actions.closes || more.closes;
  }
  for (auto& message : actions.messages) {
    wire::JobRelay relay;
    relay.set_node_index(message.node);
    *relay.mutable_spawn() = std::move(message.message);
    handlers_.send(std::move(relay));
  }
  if (timer_ == 0 && manager_.has_pending()) timer_ = loop_.after(kHubTurn, [this] { turn(); });
  for (const auto& answer : actions.answers) {
    const auto found = waiting_.find(answer.token);
    if (found == waiting_.end()) continue;
    const Done done = std::move(found->second);
    waiting_.erase(found);
    done({answer.world, answer.reason});
  }
  if (actions.start) start(*actions.start);
  if (actions.closes) handlers_.closes();
}

void SpawnHub::start(const wire::SpawnedWorld& world) {
  if (!lost_.empty()) return started(world.number(), lost_);
  auto plan = plan_of_world(plan_, world);
  plan ? handlers_.start(std::move(*plan)) : started(world.number(), plan.error().message());
}

void SpawnHub::turn() {
  timer_ = 0;
  manager_.turn(base::monotonic_now());
  carry_out();
}

}  // namespace score::shepherd
