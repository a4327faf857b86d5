// Room places a step like every job, but inside another job.
// This file is tested by gang/head/steps_test.cpp.
#include "base/limits.hpp"
#include "base/text/plain.hpp"
#include "gang/schedule/request_check.hpp"
#include "gang/schedule/room.hpp"

#include <algorithm>

namespace score::gang {

using base::Errc;
using base::fail;
using base::Result;

namespace {

std::vector<Candidate> candidates_of(const Job& allocation, const Job& step,
                                     const std::vector<std::vector<std::uint32_t>>& cores) {
  std::vector<Candidate> room;
  for (std::size_t m = 0; m < cores.size(); ++m) {
    const NodeIndex node = allocation.cells.nodes[m];
    if (!is_allowed(step.allowed, node)) continue;
    const auto free = static_cast<std::uint32_t>(cores[m].size());
    const std::uint32_t tasks = tasks_on_cores(step.shape, free);
    if (tasks > 0) room.push_back({node, tasks, 0});
  }
  return room;
}

bool has_units(const Job& step) {
  return !step.request.generic.empty();
}

// Returns the allocation's units of this kind there that no other step has requested.
std::vector<std::uint32_t> free_units(const JobTable& jobs, const Job& allocation, const Job& step,
                                      std::size_t member, const std::string& kind) {
  std::vector<std::uint32_t> free;
  for (const base::GenericShare& share : allocation.units.at(member)) {
    if (share.name == kind) free = share.indices;
  }
  if (step.request.overlap) return free;
  const NodeIndex node = allocation.cells.nodes[member];
  for (const JobId id : *allocation.steps) {
    const Job* other = jobs.find(id);
    if (other == nullptr || !has_units(*other) || other->request.overlap) continue;
    const auto there = other->member_on(node);
    if (!there) continue;
    for (const base::GenericShare& share : other->units.at(*there)) {
      if (share.name != kind) continue;
      std::erase_if(free, [&](std::uint32_t unit) {
        return std::ranges::find(share.indices, unit) != share.indices.end();
      });
    }
  }
  return free;
}

// Returns the lowest units; nullopt if other steps have too many.
std::optional<std::vector<base::GenericShare>> units_for_step(const JobTable& jobs,
                                                              const Job& allocation,
                                                              const Job& step, std::size_t member) {
  std::vector<base::GenericShare> shares;
  for (const base::GenericResource& wanted : step.request.generic) {
    auto free = free_units(jobs, allocation, step, member, wanted.name);
    if (free.size() < wanted.count) return std::nullopt;
    free.resize(wanted.count);
    shares.push_back({wanted.name, std::move(free)});
  }
  return shares;
}

// Checks that each node of the job has enough units for the step.
Result<void> check_units(const Job& allocation, const base::ResourceRequest& request) {
  for (const base::GenericResource& wanted : request.generic) {
    if (wanted.memory > base::Bytes{0}) {
      return fail(Errc::Unsupported,
                  "a step uses the memory that job {} has of its units; leave out "
                  "mem= of --gres",
                  allocation.id);
    }
    const auto has =
        std::ranges::find(allocation.request.generic, wanted.name, &base::GenericResource::name);
    if (has != allocation.request.generic.end() && has->count >= wanted.count) continue;
    return fail(Errc::TooLarge, "the step needs {}:{} per node; job {} has {}", wanted.name,
                wanted.count, allocation.id,
                has == allocation.request.generic.end() ? 0 : has->count);
  }
  return {};
}

std::size_t core_count(const Job& job) {
  std::size_t count = 0;
  for (const auto& cores : job.cells.cores) count += cores.size();
  return count;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> cores_for_step(const JobTable& jobs, const Job& allocation,
                                                       const Job& step) {
  std::vector<std::vector<std::uint32_t>> cores = allocation.cells.cores;
  if (step.request.overlap) return cores;
  for (const JobId id : *allocation.steps) {
    const Job* other = jobs.find(id);
    if (other == nullptr || !other->placed || other->request.overlap) continue;
    for (std::size_t m = 0; m < other->cells.nodes.size(); ++m) {
      const auto member = allocation.member_on(other->cells.nodes[m]);
      if (!member) continue;
      std::erase_if(cores[*member], [&](std::uint32_t core) {
        return std::ranges::binary_search(other->cells.cores[m], core);
      });
    }
  }
  return cores;
}

Result<Shape> check_step(const JobTable& jobs, const NodeTable& nodes,
                         const base::ResourceRequest& request) {
  const JobId id = request.inside;
  const Job* allocation = jobs.find(id);
  if (allocation == nullptr) return fail(Errc::NotFound, "no job {}", id);
  if (!allocation->request.allocation) {
    return fail(Errc::WrongState,
                "job {} takes no steps: it was not submitted by scbatch or scalloc", id);
  }
  if (base::is_final(allocation->state) || allocation->outcome->ending()) {
    return fail(Errc::WrongState, "job {} has ended", id);
  }
  if (!allocation->placed || allocation->state < JobState::Running) {
    return fail(Errc::WrongState, "job {} has not started", id);
  }
  if (allocation->steps->size() >= base::limits::kMaxLiveSteps) {
    return fail(Errc::Busy, "job {} has {} steps that run or wait", id, allocation->steps->size());
  }
  for (const auto* list : {&request.only_nodes, &request.except_nodes}) {
    for (const std::string& name : *list) {
      if (!nodes.find(name)) return fail(Errc::NotFound, "no node {}", name);
    }
  }
  if (auto has = check_units(*allocation, request); !has) return has.error();
  if (request.scratch > base::Bytes{0}) {
    return fail(Errc::Unsupported, "a step uses the volume of job {}: leave out --scratch", id);
  }
  Result<Shape> shape = shape_of(request);
  if (!shape) return shape;
  shape->memory = base::Bytes{0};  // the job's memory is reserved
  shape->tasks_per_core = allocation->shape.tasks_per_core;
  Job step;
  step.request = request;
  step.shape = *shape;
  step.allowed = allowed_nodes(nodes, request);
  std::vector<Candidate> room = candidates_of(*allocation, step, allocation->cells.cores);
  if (choose(*shape, room)) return shape;
  return fail(Errc::TooLarge, "the step needs {} with {} each on {}; job {} has {} on {}",
              base::counted(shape->tasks, "task"), base::counted(shape->cpus_per_task, "core"),
              base::counted(std::max(1U, shape->nodes), "node"), id,
              base::counted(core_count(*allocation), "core"),
              base::counted(allocation->cells.nodes.size(), "node"));
}

std::optional<Spot> Room::spot_inside(const Job& step) const {
  const Job* allocation = jobs_.find(step.request.inside);
  if (allocation == nullptr || !allocation->placed) return std::nullopt;
  const auto cores = cores_for_step(jobs_, *allocation, step);
  std::vector<Candidate> room = candidates_of(*allocation, step, cores);
  std::erase_if(room, [&](const Candidate& candidate) {
    const auto member = allocation->member_on(candidate.node);
    return !has_place(step, candidate.node) ||
           (has_units(step) && !units_for_step(jobs_, *allocation, step, *member));
  });
  auto choice = choose(step.shape, room);
  if (!choice) return std::nullopt;
  return Spot{std::nullopt, std::move(*choice)};
}

// Puts the step on the lowest cores that it may have. A step that requests no units has all of its
// job.
void Room::put_inside(Job& step) {
  const Job& allocation = jobs_.at(step.request.inside);
  step.units.clear();
  for (std::size_t m = 0; has_units(step) && m < step.cells.nodes.size(); ++m) {
    const std::size_t member = *allocation.member_on(step.cells.nodes[m]);
    step.units.push_back(units_for_step(jobs_, allocation, step, member).value());
  }
  const auto cores = cores_for_step(jobs_, allocation, step);
  for (std::size_t m = 0; m < step.cells.nodes.size(); ++m) {
    const auto& free = cores[*allocation.member_on(step.cells.nodes[m])];
    const std::size_t wanted = cores_of_tasks(step.shape, step.tasks_on_node[m]);
    step.cells.cores[m].assign(
        free.begin(), free.begin() + static_cast<std::ptrdiff_t>(std::min(wanted, free.size())));
  }
  take_cells(step, 0);
}

}  // namespace score::gang
