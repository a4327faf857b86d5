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

}  // namespace score::gang
