// The programs of a host as one compressed tar file, for hosts where Scored is not installed.
#pragma once

#include "base/os/spawn.hpp"
#include "base/result.hpp"

#include <memory>
#include <string>

namespace score::scout {

class Bundle {
 public:
  // Starts making it in `directory` from the programs beside `programs`, without debugging symbols
  // and with the shared libraries that they need, except the C library's. Calling it again: no
  // effect. Errors: errno codes.
  Status start(const std::string& programs, const std::string& directory);

  // A child has ended. Gives true once the bundle is complete. Errors: Unsupported with the last
  // line of what failed.
  Result<bool> on_child(pid_t pid, int shell_code);

  // The file's bytes; nothing before it is complete.
  [[nodiscard]] const std::shared_ptr<const std::string>& bytes() const { return bytes_; }

 private:
  std::string directory_;
  SpawnedProcess maker_;
  std::shared_ptr<const std::string> bytes_;
};

}  // namespace score::scout
