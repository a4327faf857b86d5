#pragma once
// Finds a set of images of a job, and makes a submission of it.

#include "base/result.hpp"
#include "proto/client.pb.h"

#include <string>
#include <string_view>

namespace score::scout {

// Returns the directory of the set that `word` names: a set, the directory of a job, or a job's
// number in `images`. Of a job it is the newest complete set. Errors: NotFound.
Result<std::string> find_set(const std::string& word, const std::string& images);

// Returns the submission that continues the job of a set on as many nodes with as many tasks on
// each, without a request id. Errors: errno codes, Malformed, Unsupported.
Result<wire::Submit> read_saved_job(const std::string& set);

// Places the job as the text of the file `complete` says. Errors: Malformed, Unsupported.
Status place_as_saved(std::string_view complete, wire::ResourceRequest& resources);

}  // namespace score::scout
