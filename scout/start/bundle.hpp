// Makes one compressed tar file of a host's programs, for hosts where Scored is not installed.
#pragma once

#include "base/os/spawn.hpp"
#include "base/result.hpp"

#include <memory>
#include <string>

namespace score::scout {

class Bundle {
 public:
  // Starts making the bundle in `directory` from the programs next to `programs`. It has no
  // debugging symbols, and includes the shared libraries that the programs need, except the C
  // library's. A second call has no effect. Errors: errno codes.
  Status start(const std::string& programs, const std::string& directory);

  // Handles the end of a child. Returns true once the bundle is complete. Errors: Unsupported with
  // the last line of the failure.
  Result<bool> on_child(pid_t pid, int shell_code);

  // Returns the file's bytes; null until the bundle is complete.
  [[nodiscard]] const std::shared_ptr<const std::string>& bytes() const { return bytes_; }

 private:
  std::string directory_;
  SpawnedProcess maker_;
  std::shared_ptr<const std::string> bytes_;
};

}  // namespace score::scout
