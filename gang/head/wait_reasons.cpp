// This file is tested by placement_test.cpp.
#include "gang/head/wait_reasons.hpp"

#include "base/model/resources.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/plain.hpp"
#include "gang/lifecycle/parking.hpp"
#include "gang/schedule/request_check.hpp"

#include <algorithm>
#include <map>
#include <span>

namespace score::gang {

namespace {

using Names = std::vector<std::string>;

constexpr std::size_t kMaxNamesBytes = 160;  // in a reason, which is a line of a table
constexpr std::size_t kNamesShown = 8;       // if all of them are too many

std::string join(const Names& names) {
  std::string all = base::compress_hostlist(names);
  if (all.size() <= kMaxNamesBytes || names.size() <= kNamesShown) return all;
  const std::span first(names.data(), kNamesShown);
  return fmt::format("{} and {} more", base::compress_hostlist(first), names.size() - kNamesShown);
}

struct Reasons {
  const Tables& tables;
  const Placer& placer;
  const Job& job;
  bool has_spot = false;
  Names out{};

  // Returns an empty string if the job may be placed there.
  [[nodiscard]] std::string why_unusable(NodeIndex index) const {
    const Node& node = tables.nodes[index];
    if (node.drained) return "drained";
    if (node.state == NodeState::Unknown) return "not seen yet";
    if (node.state == NodeState::Down) return "down";
    if (node.state == NodeState::Suspect) return "suspect";
    if (!node.zombies.empty()) return "still ending an earlier job";
    if (std::string why = why_reserved(index); !why.empty()) return why;
    if (std::string why = placer.why_no_place(job, index); !why.empty()) return why;
    return placer.may_use(job, index) ? "" : "busy";
  }

  [[nodiscard]] std::string why_reserved(NodeIndex index) const {
    const Calendar& calendar = tables.calendar;
    const Occupant occupant = placer.occupant(job);
    const Reservation* r = calendar.blocking(occupant, index);
    if (r != nullptr && calendar.has_begun(*r)) return fmt::format("reserved ({})", r->name);
    if (r != nullptr) {
      return fmt::format("reservation {} begins in {}, before a job {} is sure to have ended",
                         r->name, rounded(r->start - calendar.now()),
                         occupant.bound ? "with its time limit" : "without a time limit");
    }
    if (calendar.may_use(occupant, index)) return {};
    const Reservation* own = calendar.find(occupant.reservation);
    const bool has_begun = own != nullptr && calendar.has_begun(*own);
    return fmt::format("{} reservation {}", has_begun ? "not in" : "waits for",
                       occupant.reservation);
  }

  [[nodiscard]] static std::string rounded(Duration time) {
    return base::format_duration(std::chrono::ceil<std::chrono::seconds>(time));
  }

  // Adds that only the number of switches keeps the job waiting.
  void add_switches() {
    if (!job.is_near) return;
    Job anywhere = job;
    anywhere.is_near = false;
    if (has_spot || !placer.find_spot(anywhere)) return;
    const Duration wait = job.request.switches_wait;
    out.push_back(fmt::format(
        "waits for nodes within {}{} (--switches)",
        base::counted(job.request.switches, "switch", "switches"),
        wait == Duration::zero() ? "" : ", for " + base::format_duration(wait) + " at most"));
  }

  // Adds the reason why a step waits.
  void add_step() {
    const Job* allocation = tables.jobs.find(job.request.inside);
    std::map<std::string, Names> full;
    for (const NodeIndex node :
         allocation == nullptr ? std::vector<NodeIndex>() : allocation->cells.nodes) {
      std::string why = placer.why_no_place(job, node);
      if (!why.empty()) full[std::move(why)].push_back(tables.nodes.name(node));
    }
    for (const auto& [why, which] : full) out.push_back(fmt::format("{}: {}", why, join(which)));
    if (!out.empty()) return;
    out.push_back(fmt::format("other steps use the {} of job {}",
                              job.request.generic.empty() ? "cores" : "cores or units",
                              job.request.inside));
  }

  // Adds the reason that the job's own reservation gives.
  void add_reservation() {
    const std::string& name = job.request.reservation;
    if (name.empty()) return;
    const Reservation* r = tables.calendar.find(name);
    if (r == nullptr) {
      out.push_back(fmt::format("reservation {} has ended or was removed", name));
    } else if (!tables.calendar.has_begun(*r)) {
      out.push_back(fmt::format("reservation {} begins in {}", name,
                                rounded(r->start - tables.calendar.now())));
    } else if (!tables.calendar.admits(*r, placer.occupant(job))) {
      out.push_back(fmt::format("reservation {} is for other users", name));
    }
  }

  void add_recovery() {
    Names awaited;
    for (NodeIndex node = 0; node < tables.nodes.size(); ++node) {
      if (tables.nodes.is_awaited(node)) awaited.push_back(tables.nodes.name(node));
    }
    if (awaited.empty()) return;
    out.push_back(fmt::format("the head restarted and waits for {}", join(awaited)));
  }

  void add_nodes() {
    std::map<std::string, Names> unusable;
    std::uint32_t usable = 0;
    for (NodeIndex node = 0; node < tables.nodes.size(); ++node) {
      if (!is_allowed(job.allowed, node)) continue;
      if (const std::string why = why_unusable(node); !why.empty()) {
        unusable[why].push_back(tables.nodes.name(node));
      } else {
        ++usable;
      }
    }
    const std::uint32_t needed = std::max(1U, job.shape.nodes);
    if (usable < needed) {
      out.push_back(fmt::format("needs {}, {} can be used", base::counted(needed, "node"), usable));
    }
    if (has_spot) return;
    add_constraint();
    for (const auto& [why, which] : unusable) {
      out.push_back(fmt::format("{}: {}", why, join(which)));
    }
  }

  // Adds the reason that a change of the job's partition gives.
  void add_partition() {
    const std::string& name = job.request.partition;
    if (name.empty()) return;
    const Partition* partition = tables.nodes.partitions().find(name);
    if (partition == nullptr) {
      out.push_back(fmt::format("partition {} was removed from the configuration", name));
    } else if (partition->nodes.size() < job.shape.nodes) {
      out.push_back(fmt::format("partition {} now has {}, the job needs {}", name,
                                base::counted(partition->nodes.size(), "node"), job.shape.nodes));
    }
  }

  void add_constraint() {
    if (job.request.features.empty() && (job.request.partition.empty() || job.allowed.empty())) {
      return;
    }
    Names qualified;
    for (NodeIndex node = 0; node < tables.nodes.size(); ++node) {
      if (is_allowed(job.allowed, node)) qualified.push_back(tables.nodes.name(node));
    }
    if (qualified.empty() && job.request.features.empty()) return;
    const std::string& partition = job.request.partition;
    std::string what = partition.empty() ? "" : fmt::format("partition {}", partition);
    if (!job.request.features.empty()) {
      what += fmt::format("{}constraint {}", what.empty() ? "" : ", ",
                          base::format_constraint(job.request.features));
    }
    out.push_back(fmt::format("{}: {}", what, join(qualified)));
  }

  // Adds the reason of kept rows; see Hold.
  void add_kept_rows() {
    const std::string limit = base::format_duration(tables.config.long_limit);
    const std::uint32_t slots = tables.config.max_slots;
    const std::size_t of_long = placer.held_rows(Hold::Long);
    if (placer.holds_row(job, Hold::Long) && of_long >= placer.most_held_rows(Hold::Long)) {
      out.push_back(fmt::format(
          "jobs with a time limit over {} hold {} of {} slots, which is the limit for such jobs",
          limit, of_long, slots));
      return;
    }
    out.push_back(
        fmt::format("jobs with no time limit or one over {} hold {} of {} slots; the rest is kept "
                    "for jobs with "
                    "--time of at most {}",
                    limit, placer.held_rows(Hold::Any), slots, limit));
  }

  void add_room() {
    if (has_spot) return;
    if (std::string why = turn_reason(job, tables.calendar.now()); !why.empty()) {
      out.push_back(std::move(why));
    }
    Names memory;
    Names scratch;
    Names units;
    Names exclusive;
    Names occupied;
    for (NodeIndex node = 0; node < tables.nodes.size(); ++node) {
      if (!placer.may_use(job, node)) continue;
      const std::string& name = tables.nodes.name(node);
      if (placer.free_memory(job, node) < job.shape.memory) memory.push_back(name);
      if (placer.free_scratch(job, node) < job.shape.scratch) scratch.push_back(name);
      const bool has_kinds = offers(tables.nodes[node].info.generic, job.request.generic);
      if (has_kinds && !placer.units().has_room(job, node, std::nullopt)) units.push_back(name);
      if (job.overlay()) continue;
      if (placer.on_node(node).exclusive) exclusive.push_back(name);
      if (placer.matrix().load(node) > 0) occupied.push_back(name);
    }
    if (!memory.empty()) {
      out.push_back(fmt::format("memory: {} per node is not free on {}",
                                base::human_bytes(job.shape.memory), join(memory)));
    }
    if (!scratch.empty()) {
      out.push_back(fmt::format("scratch: {} per node is not free on {}",
                                base::human_bytes(job.shape.scratch), join(scratch)));
    }
    if (!units.empty()) {
      out.push_back(fmt::format("{} per node is not free on {}",
                                base::format_generic(job.request.generic), join(units)));
    }
    if (!exclusive.empty()) out.push_back(fmt::format("exclusive jobs hold {}", join(exclusive)));
    if (job.is_exclusive() && !occupied.empty()) {
      out.push_back(fmt::format("exclusive: other jobs hold {}", join(occupied)));
    } else if (std::string why = placer.why_no_row(job); !why.empty()) {
      out.push_back(std::move(why));
    } else if (placer.is_kept_out(job)) {
      add_kept_rows();
    } else if (!job.overlay() && placer.matrix().row_count() >= placer.rows_for(job)) {
      out.push_back(fmt::format("too few free cores in each of the {}",
                                base::counted(placer.rows_for(job), "slot")));
    }
    if (std::string why = placer.why_waits(job); !why.empty()) out.push_back(std::move(why));
    if (const auto ahead = placer.behind(job)) {
      out.push_back(fmt::format("room is kept for job {}, which is ahead in the queue", *ahead));
    }
  }
};

}  // namespace

Names wait_reasons(const Tables& tables, const Placer& placer, const Job& job) {
  Reasons reasons{tables, placer, job, placer.find_spot(job).has_value()};
  if (job.request.held) reasons.out.emplace_back("held until it is released");
  if (job.is_paused) {
    reasons.out.push_back("its launch failed and will be repeated soon: " + job.lost);
    return std::move(reasons.out);
  }
  reasons.add_recovery();
  if (job.is_step()) {
    if (reasons.out.empty()) reasons.add_step();
    return std::move(reasons.out);
  }
  if (std::string why = placer.why_closed(job); !why.empty()) reasons.out.push_back(std::move(why));
  for (std::string& why : placer.licenses().why_short(job)) reasons.out.push_back(std::move(why));
  reasons.add_reservation();
  reasons.add_partition();
  reasons.add_switches();
  reasons.add_nodes();
  reasons.add_room();
  if (reasons.out.empty()) {
    reasons.out.emplace_back(reasons.has_spot ? "will be placed at the next scheduling pass"
                                              : "the usable nodes have too few cores");
  }
  if (!job.lost.empty()) reasons.out.push_back("its last attempt ended: " + job.lost);
  return std::move(reasons.out);
}

}  // namespace score::gang
