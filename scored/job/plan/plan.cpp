#include "scored/job/plan/plan.hpp"

#include "base/errc.hpp"
#include "base/limits.hpp"

#include <algorithm>
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
  if (prepare.tasks_on_node(static_cast<int>(prepare.node_index())) == 0) {
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

}  // namespace

std::vector<std::uint32_t> Plan::first_ranks() const {
  if (spec.programs_size() == 1 && spec.programs(0).tasks() == 0) return {0, size};
  std::vector<std::uint32_t> firsts{0};
  for (const auto& program : spec.programs()) firsts.push_back(firsts.back() + program.tasks());
  return firsts;
}

std::vector<std::uint32_t> Plan::nodes_of_ranks() const {
  return base::nodes_of_ranks(counts_of(prepare), distribution());
}

std::string Plan::key_space() const {
  return fmt::format("scored.{}.{}", spec.key_space(), prepare.attempt());
}

std::uint32_t Plan::places() const {
  const std::uint32_t each = std::max(1U, spec.cpus_per_task());
  const std::uint32_t places = static_cast<std::uint32_t>(prepare.cores_size()) / each;
  return places == 0 ? local_tasks() : std::min(places, local_tasks());
}

bool Plan::takes_input(std::uint32_t task) const {
  if (!spec.stdin_path().empty()) return false;
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
  plan.prepare.clear_spec();  // it may be megabytes, and is in plan.spec now
  if (auto good = check_counts(plan.prepare); !good) return good.error();
  if (auto good = check_programs(plan.spec); !good) return good.error();
  std::uint64_t size = 0;
  for (const std::uint32_t tasks : plan.prepare.tasks_on_node()) size += tasks;
  if (size > limits::kMaxTasksPerJob) return base::fail(base::Errc::TooLarge, "{} ranks", size);
  plan.size = static_cast<std::uint32_t>(size);
  plan.ranks =
      base::ranks_of_node(counts_of(plan.prepare), plan.prepare.node_index(), plan.distribution());
  const auto firsts = plan.first_ranks();
  if (firsts.back() != plan.size) {
    return base::fail(base::Errc::Malformed, "programs of {} tasks, a job of {}", firsts.back(),
                      plan.size);
  }
  for (const std::uint32_t rank : plan.ranks) {
    const auto next = std::ranges::upper_bound(firsts, rank);
    plan.apps.push_back(static_cast<std::uint32_t>(next - firsts.begin()) - 1);
  }
  return plan;
}

std::optional<std::string_view> find_variable(const wire::LaunchSpec& spec,
                                              const wire::Program& program, std::string_view name) {
  for (const auto* variables : {&program.env(), &spec.env()}) {
    // The last one counts, as when a shell sets it again.
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
