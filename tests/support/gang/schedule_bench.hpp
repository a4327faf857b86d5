#pragma once
// ScheduleBench serves tests of single parts. It has connected nodes, and jobs that a Placer places
// and that run at once.

#include "gang/schedule/placer.hpp"
#include "gang/schedule/request_check.hpp"

#include <gtest/gtest.h>

namespace score::gang {

using namespace std::chrono_literals;

struct ScheduleBench {
  // Creates nodes node0, node1 ... with this many cores.
  explicit ScheduleBench(std::uint32_t nodes, std::uint32_t cores = 1, ClusterConfig config = {})
      : tables(std::move(config)) {
    step.now = TimePoint{1h};
    for (std::uint32_t id = 0; id < nodes; ++id) add_node(id, cores);
    placer.place_waiting(step.now);  // no job waits: room no longer grows
  }

  void add_node(std::uint32_t id, std::uint32_t cores) {
    const std::string name = fmt::format("node{}", id);
    EXPECT_TRUE(tables.nodes.add(NodeId{id}, name));
    placer.add_node();
    tables.nodes.set_hardware(id, {name, cores, base::Bytes{1 << 30}});
    tables.nodes.connect(id, step);
    placer.follow_hardware(id);
  }

  static base::ResourceRequest on_nodes(std::uint32_t nodes,
                                        base::Queue queue = base::Queue::Normal) {
    base::ResourceRequest request;
    request.nodes = nodes;
    request.queue = queue;
    return request;
  }

  // Adds a job, which is then in the queue or placed.
  Job& add(const base::ResourceRequest& request) {
    const auto shape = check_request(tables.nodes, request, true);
    EXPECT_TRUE(shape);
    Job& job = tables.jobs.add(JobId{++last_job}, UserId{1000}, request, *shape);
    job.allowed = allowed_nodes(tables.nodes, request);
    if (placer.try_new(job)) launch(job);
    return job;
  }

  void launch(Job& job) {
    ++job.attempts;
    job.members.edit().ask_all(job.cells.nodes.size());
    job.idleness.edit().begin(job.cells.nodes.size());
    tables.jobs.change(job, JobEvent::Place, step);
  }

  // Adds a job that is placed and in the timetable.
  Job& run(const base::ResourceRequest& request) {
    Job& job = add(request);
    EXPECT_TRUE(job.placed);
    tables.jobs.change(job, JobEvent::AllPrepared, step);
    return job;
  }

  // Lets every share of the job report this activity.
  void report(Job& job, const base::Activity& activity) {
    for (std::size_t m = 0; m < job.members->count(); ++m) job.idleness.edit().report(m, activity);
    job.idleness.edit().judge(*job.members, step.now, {1s, 3s});
    tables.jobs.mark_changed();
  }

  Tables tables;
  Placer placer{tables};
  Step step;
  std::uint64_t last_job = 0;
};

}  // namespace score::gang
