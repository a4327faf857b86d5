#include "scored/job/plan/plan.hpp"

#include "base/errc.hpp"
#include "base/limits.hpp"
#include "base/text/hostlist.hpp"

#include <algorithm>
#include <functional>
#include <span>

namespace score::shepherd {

namespace {

namespace limits = base::limits;

base::Status check_counts(const wire::ShepherdPrepare& prepare) {
  if (prepare.node_index() >= static_cast<std::uint32_t>(prepare.tasks_on_node_size())) {
    return base::fail(base::Errc::Malformed, "node {} of {}", prepare.node_index(),
                      prepare.tasks_on_node_size());
  }
  if (static_cast<std::size_t>(prepare.tasks_on_node_size()) > limits::kMaxNodes) {
    return base::fail(base::Errc::TooLarge, "{} nodes", prepare.tasks_on_node_size());
  }
  for (const std::uint32_t tasks : prepare.tasks_on_node()) {
    if (tasks > limits::kMaxTasksPerNode)
      return base::fail(base::Errc::TooLarge, "{} tasks", tasks);
  }
  // A node of an allocation may hold a part of its volume and run none of its tasks.
  const bool is_empty = prepare.tasks_on_node(static_cast<int>(prepare.node_index())) == 0;
  if (is_empty && prepare.scratch_bytes() == 0) {
    return base::fail(base::Errc::Malformed, "no tasks on this node");
  }
  if (prepare.distribution() > static_cast<std::uint32_t>(base::Distribution::Cyclic)) {
    return base::fail(base::Errc::Malformed, "distribution {}", prepare.distribution());
  }
  return {};
}

std::span<const std::uint32_t> counts_of(const wire::ShepherdPrepare& prepare) {
  const auto& counts = prepare.tasks_on_node();
  return {counts.data(), static_cast<std::size_t>(counts.size())};
}

base::Status check_programs(const wire::LaunchSpec& spec) {
  if (spec.programs().empty()) return base::fail(base::Errc::Malformed, "no command");
  for (const wire::Program& program : spec.programs()) {
    if (program.argv().empty() || program.argv(0).empty()) {
      return base::fail(base::Errc::Malformed, "no command");
    }
    if (program.tasks() > limits::kMaxTasksPerJob) {
      return base::fail(base::Errc::TooLarge, "a program of {} tasks", program.tasks());
    }
  }
  return {};
}

// Checks that the places lie in the room for spawned tasks and are in ascending order.
base::Status check_places(const Plan& plan) {
  const std::uint32_t first = plan.total - plan.spec.spawn();
  const auto& places = plan.prepare.world().places();
  const auto is_room = [&](std::uint32_t place) { return place >= first && place < plan.total; };
  if (!places.empty() && std::ranges::all_of(places, is_room) &&
      std::ranges::adjacent_find(places, std::greater_equal()) == places.end()) {
    return {};
  }
  return base::fail(base::Errc::Malformed, "places of spawned tasks");
}

// Fills in the tasks and programs of this plan's world: the job's first world or a spawned one.
base::Status enter_world(Plan& plan) {
  if (plan.world() != 0) {
    if (auto good = check_places(plan); !good) return good;
    plan.size = static_cast<std::uint32_t>(plan.prepare.world().places_size());
    *plan.spec.mutable_programs() = plan.prepare.world().programs();
  } else {
    plan.size = plan.total - plan.spec.spawn();
  }
  if (auto good = check_programs(plan.spec); !good) return good;
  const auto firsts = plan.first_ranks();
  if (firsts.back() != plan.size) {
    return base::fail(base::Errc::Malformed, "programs of {} tasks, a job of {}", firsts.back(),
                      plan.size);
  }
  const auto& places = plan.prepare.world().places();
  for (std::uint32_t task = 0; task < plan.ranks.size(); ++task) {
    const bool is_member = plan.world() == 0 ? plan.ranks[task] < plan.size
                                             : std::ranges::binary_search(places, plan.ranks[task]);
    plan.apps.push_back(0);
    if (!is_member) continue;
    plan.members.push_back(task);
    const auto next = std::ranges::upper_bound(firsts, plan.world_rank_of(task));
    plan.apps.back() = static_cast<std::uint32_t>(next - firsts.begin()) - 1;
  }
  return {};
}

}  // namespace

std::vector<std::uint32_t> Plan::first_ranks() const {
  if (spec.programs_size() == 1 && spec.programs(0).tasks() == 0) return {0, size};
  std::vector<std::uint32_t> firsts{0};
  for (const auto& program : spec.programs()) firsts.push_back(firsts.back() + program.tasks());
  return firsts;
}

std::vector<std::uint32_t> Plan::nodes_of_tasks() const {
  return base::nodes_of_ranks(counts_of(prepare), distribution());
}

std::vector<std::uint32_t> Plan::nodes_of_ranks() const {
  auto nodes = nodes_of_tasks();
  if (world() == 0) {
    nodes.resize(size);
    return nodes;
  }
  std::vector<std::uint32_t> of_world;
  for (const std::uint32_t place : prepare.world().places()) of_world.push_back(nodes[place]);
  return of_world;
}

std::vector<std::uint32_t> Plan::members_on_node() const {
  std::vector<std::uint32_t> counts(node_count(), 0);
  for (const std::uint32_t node : nodes_of_ranks()) ++counts[node];
  return counts;
}

std::uint32_t Plan::world_rank_of(std::uint32_t task) const {
  if (world() == 0) return ranks[task];
  const auto& places = prepare.world().places();
  return static_cast<std::uint32_t>(std::ranges::lower_bound(places, ranks[task]) - places.begin());
}

std::string Plan::key_space_of(std::uint32_t world) const {
  auto name = fmt::format("scored.{}.{}", spec.key_space(), prepare.attempt());
  if (world != 0) name += fmt::format(".{}", world);
  return name;
}

std::uint32_t Plan::places() const {
  const std::uint32_t each = std::max(1U, spec.cpus_per_task());
  const std::uint32_t places = static_cast<std::uint32_t>(prepare.cores_size()) / each;
  return places == 0 ? local_tasks() : std::min(places, local_tasks());
}

bool Plan::takes_input(std::uint32_t task) const {
  const bool is_spawned = rank_of(task) >= total - spec.spawn();
  if (!spec.stdin_path().empty() || is_spawned) return false;
  if (has_terminal(task)) return true;
  return spec.stdin_rank() == -1 || spec.stdin_rank() == static_cast<std::int64_t>(rank_of(task));
}

base::Result<Plan> parse_plan(std::string_view payload) {
  Plan plan;
  const auto parses = [](google::protobuf::MessageLite& message, std::string_view bytes) {
    return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  };
  if (!parses(plan.prepare, payload)) return base::fail(base::Errc::Malformed, "prepare");
  if (!parses(plan.spec, plan.prepare.spec())) return base::fail(base::Errc::Malformed, "spec");
  plan.prepare.clear_spec();  // it may be megabytes, and plan.spec holds it now
  if (auto good = check_counts(plan.prepare); !good) return good.error();
  auto names = base::expand_hostlist(plan.spec.nodelist());
  if (!names) return names.error();
  plan.node_names = *std::move(names);
  std::uint64_t total = 0;
  for (const std::uint32_t tasks : plan.prepare.tasks_on_node()) total += tasks;
  if (total > limits::kMaxTasksPerJob) return base::fail(base::Errc::TooLarge, "{} ranks", total);
  if (plan.spec.spawn() >= total) {
    return base::fail(base::Errc::Malformed, "room for {} of {} tasks", plan.spec.spawn(), total);
  }
  plan.total = static_cast<std::uint32_t>(total);
  plan.ranks =
      base::ranks_of_node(counts_of(plan.prepare), plan.prepare.node_index(), plan.distribution());
  if (auto entered = enter_world(plan); !entered) return entered.error();
  return plan;
}

base::Result<Plan> plan_of_world(const Plan& job, const wire::SpawnedWorld& world) {
  Plan plan = job;
  *plan.prepare.mutable_world() = world;
  plan.apps.clear();
  plan.members.clear();
  if (world.number() == 0) return base::fail(base::Errc::Malformed, "a world without a number");
  if (auto entered = enter_world(plan); !entered) return entered.error();
  return plan;
}

std::string prepare_bytes(const Plan& plan) {
  auto prepare = plan.prepare;
  prepare.set_spec(plan.spec.SerializeAsString());
  return prepare.SerializeAsString();
}

std::optional<std::string_view> find_variable(const wire::LaunchSpec& spec,
                                              const wire::Program& program, std::string_view name) {
  for (const auto* variables : {&program.env(), &spec.env()}) {
    // Later assignments override earlier ones, as in a shell.
    for (int i = variables->size() - 1; i >= 0; --i) {
      const std::string_view variable = variables->Get(i);
      const bool is_it = variable.size() > name.size() && variable.starts_with(name) &&
                         variable[name.size()] == '=';
      if (is_it) return variable.substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

}  // namespace score::shepherd
