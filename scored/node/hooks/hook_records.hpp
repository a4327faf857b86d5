#pragma once
// HookRecords lists the attempts whose prolog has begun and whose epilog has not ended, in memory
// and as one file per attempt. So a daemon that was killed runs the epilogs that are missing.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "scored/privileged/hooks/protocol.hpp"

#include <map>
#include <string>
#include <vector>

namespace score::node {

class HookRecords {
 public:
  // `directory` belongs to the daemon; it is made when it is needed.
  explicit HookRecords(std::string directory) : directory_(std::move(directory)) {}

  // Reads the files. Files that are no records are removed.
  void load();
  // Stores the record of request.attempt. Errors: errno codes.
  [[nodiscard]] Status add(const hooks::HookRequest& request);
  // Removes the record, if there is one.
  void remove(AttemptId attempt);

  // Returns nullptr if there is none.
  [[nodiscard]] const hooks::HookRequest* find(AttemptId attempt) const;
  [[nodiscard]] std::vector<AttemptId> all() const;
  // Returns true if another attempt of the same job has a record.
  [[nodiscard]] bool has_other(AttemptId attempt) const;

 private:
  [[nodiscard]] std::string path_of(AttemptId attempt) const;

  std::string directory_;
  std::map<AttemptId, hooks::HookRequest> records_;
};

}  // namespace score::node
