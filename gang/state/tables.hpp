#pragma once
// What the head's scheduler knows. Its parts share one Tables and keep what only they need.

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

}  // namespace score::gang
