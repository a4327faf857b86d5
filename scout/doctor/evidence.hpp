// Collects all facts of one run of the doctor.
#pragma once

#include "proto/client.pb.h"
#include "scout/doctor/probe_report.hpp"
#include "scout/session/head_link.hpp"

#include <optional>
#include <string>

namespace score::scout {

struct Evidence {
  std::string release;  // version of this command
  wire::Info info;
  wire::NodeList nodes;
  std::optional<wire::Facts> facts;
  std::string why_no_facts;
  std::optional<ProbeReport> probe;
  std::string why_no_probe;
  std::string why_probe_ended;  // before it had printed everything; empty: it had
  bool with_pairs = true;
};

// Asks the head and the daemons for their facts; the probe is not included. Errors: those of the
// head's first answers.
Result<Evidence> ask_daemons(HeadLink& head);

// Returns true if jobs are placed on the node: it is up and not drained.
bool takes_jobs(const wire::NodeStatus& node);

}  // namespace score::scout
