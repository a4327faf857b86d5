#pragma once
// Tables contains the common data of the parts of the head's scheduler. A part keeps the data that
// only it needs.

#include "gang/state/calendar.hpp"
#include "gang/state/config.hpp"
#include "gang/state/deadlines.hpp"
#include "gang/state/job_table.hpp"
#include "gang/state/node_table.hpp"

namespace score::gang {

struct Tables {
  explicit Tables(const ClusterConfig& c) : config(c), nodes(config) {}

  ClusterConfig config;
  ClusterCounters counters;
  NodeTable nodes;
  JobTable jobs;
  Deadlines deadlines;
  Calendar calendar;  // reservations of nodes
};

// Lets the job wait for a place within few switches, from now on. A restarted head waits anew.
inline void watch_switches(const Job& job, Tables& tables, const Step& step) {
  if (!job.is_near || job.request.switches_wait == base::Duration::zero()) return;
  tables.deadlines.set(job.id, DeadlineKind::Switches, step.now + job.request.switches_wait);
}

}  // namespace score::gang
