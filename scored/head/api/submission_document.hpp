#pragma once
// Reads the JSON document of a submission: one flat object whose members are called as the options
// of scrun (docs/reference/api.md). It is pure.

#include "base/result.hpp"
#include "base/time.hpp"
#include "proto/client.pb.h"

#include <string>
#include <string_view>

namespace score::head {

// A fault in a request: one line, and the member that it is about.
struct RequestFault {
  std::string text;
  std::string field;  // empty: the request as a whole
};

// Returns the submission, without a request id. Faults name the member. Times are relative to
// `now`. The head checks the values as it checks those of a command.
[[nodiscard]] Result<wire::Submit> read_submission(std::string_view document, WallTime now,
                                                   RequestFault& fault);

// Reads the document of a change: the members of a submission that score change can replace.
// null, or "none", removes a request. The message names no job. Faults and times as above.
[[nodiscard]] Result<wire::ChangeJob> read_change(std::string_view document, WallTime now,
                                                  RequestFault& fault);

}  // namespace score::head
