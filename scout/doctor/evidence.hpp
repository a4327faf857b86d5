// All facts of one run of the doctor.
#pragma once

#include "proto/client.pb.h"
#include "scout/doctor/probe_report.hpp"
#include "scout/session/head_link.hpp"

#include <optional>
#include <string>

namespace score::scout {

struct Evidence {
  std::string release;  // of this command
  wire::Info info;
  wire::NodeList nodes;
  std::optional<wire::Facts> facts;
  std::string why_no_facts;
  std::optional<ProbeReport> probe;
  std::string why_no_probe;
  bool with_pairs = true;
};

// What head and daemons know; the probe is not among it. Errors: the head's first answers.
Result<Evidence> ask_daemons(HeadLink& head);

// Up and not drained: jobs are placed there.
bool takes_jobs(const wire::NodeStatus& node);

}  // namespace score::scout
