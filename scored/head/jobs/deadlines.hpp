#pragma once
// The deadlines of jobs that the head, not gang::Cluster, is responsible for.

#include "base/model/deadlines.hpp"

#include <cstdint>

namespace score::head {

enum class DeadlineKind : std::uint8_t {
  Kill,       // the grace after SIGTERM is over
  Immediate,  // the job had to be placed by now
  FrontEnd,   // no front end came back to a job that needs one
  Drop,       // the output of an ended job was not fetched
};

using Deadlines = base::Deadlines<DeadlineKind>;

}  // namespace score::head
