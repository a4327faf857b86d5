#pragma once
// Compares what a job requested with what it used. Pure.

#include "base/model/usage.hpp"
#include "proto/client.pb.h"

#include <optional>
#include <string>
#include <vector>

namespace score::scout {

struct Efficiency {
  std::optional<double> cpu;  // processor time per core and scheduled time; none: never scheduled
  std::optional<double> memory;  // peak of a node per requested memory; none: nothing requested
  std::optional<double> time;    // scheduled time per limit; none: no limit
  std::vector<std::string> advice;
};

[[nodiscard]] Efficiency efficiency_of(const wire::JobStatus& job, const base::Usage& usage);

}  // namespace score::scout
