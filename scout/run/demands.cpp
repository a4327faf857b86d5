// The tests are in programs_test.cpp and tests/integration/test_scratch.py.
#include "scout/run/demands.hpp"

#include "base/limits.hpp"
#include "base/model/resources.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/time.hpp"
#include "base/units.hpp"
#include "proto/documents/request_words.hpp"
#include "scout/session/words.hpp"

#include <algorithm>
#include <cstdint>

namespace score::scout {

namespace {

constexpr Bytes kLeastScratch(limits::kMiB);

Status add_scratch(const DemandOptions& options, wire::ResourceRequest& resources) {
  if (options.scratch.empty()) return {};
  const auto size = parse_bytes(options.scratch);
  if (!size)
    return size.error().with_context("--scratch '{}'", escape_terminal(options.scratch, 80));
  if (*size < kLeastScratch) {
    return fail(Errc::Malformed, "--scratch {}: less than 1M; a bare number means bytes (100G, 2T)",
                escape_terminal(options.scratch, 80));
  }
  resources.set_scratch_bytes(size->value());
  return {};
}

Status add_switches(const DemandOptions& options, wire::ResourceRequest& resources) {
  if (options.switches.empty()) return {};
  const auto read = proto::parse_switches(options.switches, resources);
  if (read) return read;
  return read.error().with_context("--switches '{}'", escape_terminal(options.switches, 80));
}

Status add_licenses(const DemandOptions& options, wire::ResourceRequest& resources) {
  if (options.licenses.empty() || options.licenses == "none") return {};
  const auto added = proto::parse_license_list(options.licenses, resources);
  return added ? Status() : added.error().with_context("--licenses");
}

}  // namespace

Status add_demands(const DemandOptions& options, wire::ResourceRequest& resources) {
  if (!options.constraint.empty()) {
    const auto features = parse_constraint(options.constraint);
    if (!features) return features.error().with_context("--constraint");
    for (const auto& feature : *features) resources.add_features(feature);
  }
  if (auto added = add_scratch(options, resources); !added) return added;
  if (auto added = add_licenses(options, resources); !added) return added;
  if (auto added = add_switches(options, resources); !added) return added;
  if (options.generic.empty() || options.generic == "none") return {};
  const auto generic = parse_generic(options.generic);
  if (!generic) return generic.error().with_context("--gres");
  for (const auto& one : *generic) {
    auto& added = *resources.add_generic();
    added.set_name(one.name);
    added.set_count(one.count);
    added.set_memory_bytes(one.memory.value());
  }
  return {};
}

namespace {

constexpr Bytes kLeastMemory(limits::kMiB);  // no program starts with less

Result<Bytes> parse_memory(const std::string& text, std::string_view option) {
  const auto memory = parse_bytes(text);
  if (!memory) return memory.error().with_context("{} '{}'", option, escape_terminal(text, 80));
  if (*memory >= kLeastMemory) return *memory;
  return fail(Errc::Malformed, "{} {}: less than 1M; a bare number means bytes (512M, 2G)", option,
              text);
}

// Returns the most tasks that a node can have; the head may place fewer on some nodes.
std::uint64_t most_tasks_on_node(const wire::ResourceRequest& resources) {
  if (resources.tasks_per_node() > 0) return resources.tasks_per_node();
  const std::uint64_t tasks = std::max(1U, resources.tasks());
  const std::uint64_t nodes = resources.nodes();
  return nodes == 0 ? tasks : (std::max(tasks, nodes) + nodes - 1) / nodes;
}

}  // namespace

Status add_memory(const MemoryOptions& options, wire::ResourceRequest& resources) {
  if (!options.per_node.empty()) {
    const auto memory = parse_memory(options.per_node, "--mem");
    if (!memory) return memory.error();
    resources.set_memory_per_node_bytes(memory->value());
    return {};
  }
  if (options.per_cpu.empty()) return {};
  const auto memory = parse_memory(options.per_cpu, "--mem-per-cpu");
  if (!memory) return memory.error();
  if (resources.inside() != 0) return {};
  const std::uint64_t cores =
      most_tasks_on_node(resources) * std::max(1U, resources.cpus_per_task());
  if (memory->value() > INT64_MAX / cores) {
    return fail(Errc::TooLarge, "--mem-per-cpu {}: too much for {} cores of a node",
                options.per_cpu, cores);
  }
  resources.set_memory_per_node_bytes(memory->value() * cores);
  return {};
}

Status check_names(const std::string& account, const std::string& partition) {
  if (!account.empty() && !is_host_name(account)) {
    return fail(Errc::Malformed, "--account: '{}' is not an account", escape_terminal(account, 80));
  }
  if (partition.empty() || is_host_name(partition)) return {};
  return fail(Errc::Malformed, "--partition: '{}' is not a partition",
              escape_terminal(partition, 80));
}

Status add_limit_signal(const std::string& text, wire::ResourceRequest& resources) {
  if (text.empty()) return {};
  const auto read = proto::parse_limit_signal(text, resources);
  return read ? Status() : read.error().with_context("--signal '{}'", escape_terminal(text, 80));
}

Status fit_limit_signal(bool as_slurm, wire::ResourceRequest& resources) {
  if (resources.limit_signal() == 0) return {};
  if (resources.limit_signal_script() && !resources.allocation()) {
    return fail(Errc::Malformed, "--signal B: is for batch scripts; this job has no script");
  }
  std::int64_t limit = INT64_MAX;
  for (const auto one : {resources.scheduled_limit_ns(), resources.wall_limit_ns()}) {
    if (one > 0) limit = std::min(limit, one);
  }
  if (limit == INT64_MAX && as_slurm) {
    resources.clear_limit_signal();
    resources.clear_limit_signal_before_ns();
    resources.clear_limit_signal_script();
    return {};
  }
  if (limit == INT64_MAX) {
    return fail(Errc::Malformed, "--signal needs a limit; give it with --time or --wall-time");
  }
  const Duration before(resources.limit_signal_before_ns());
  if (before < Duration(limit)) return {};
  if (as_slurm) {
    resources.set_limit_signal_before_ns(limit / 2);
    return {};
  }
  return fail(Errc::Malformed,
              "--signal: {} is not less than the limit of {}; give a shorter time: SIG@TIME",
              format_duration(before), format_duration(Duration(limit)));
}

}  // namespace score::scout
