// Converts a node's measurements to the messages of node.proto.
#pragma once

#include "monitor/sampler/samples.hpp"
#include "proto/node.pb.h"
#include "scored/node/switch/switch_trace.hpp"

namespace score::node {

monitor::SwitchSample to_sample(const SwitchRecord& record);

void fill_task(const monitor::TaskSample& task, wire::TaskSample& out);
// `offset` is the difference from the node's clock to the cluster's.
void fill_switch(const SwitchRecord& record, Duration offset, wire::SwitchRecord& out);
// Fills in only the counts that are sent with every sample.
void fill_counts(const monitor::NodeTotals& counts, wire::SwitchTotals& out);
void fill_totals(const monitor::NodeTotals& totals, wire::SwitchTotals& out);

}  // namespace score::node
