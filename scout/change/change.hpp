// Reads the words of score change.
#pragma once

#include "base/request/job_keys.hpp"
#include "base/result.hpp"

#include <string>
#include <vector>

namespace score::scout {

struct ChangeWords {
  std::vector<std::string> jobs;     // as typed; not empty
  std::vector<JobKey> keys;          // each once; not empty
  std::vector<std::string> options;  // those of scbatch with the values; none for a value "none"
};

// Errors: NotFound (an unknown key, with the known ones), Malformed.
Result<ChangeWords> split_change(const std::vector<std::string>& words);

}  // namespace score::scout
