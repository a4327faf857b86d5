#pragma once
// The directory of a job's volume on this node is PATH/USER/ATTEMPT. It contains `data` (the
// server's), `mount` and `volume` (the description, with the key). PATH is [pario] path of the
// node. PATH/USER belongs to the user and is private; root creates it, unless the node daemon runs
// as the user.
//
// The directory is locked (flock) as long as its shepherd runs, so a directory whose lock is free
// was left by a killed shepherd.

#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace score::shepherd {

class VolumeDirectory {
 public:
  // Creates the directory, empty; leftovers of the same attempt are removed. Errors: one line for
  // the user.
  static base::Result<VolumeDirectory> make(const std::string& path, base::AttemptId attempt);

  // Returns the directory of any attempt of this user; it need not exist.
  static std::string path_of(const std::string& path, base::AttemptId attempt);
  static std::string mount_of(const std::string& directory);
  static std::string description_of(const std::string& directory);

  [[nodiscard]] std::string data() const { return path_ + "/data"; }

  [[nodiscard]] std::string mount() const { return mount_of(path_); }

  [[nodiscard]] std::string description() const { return description_of(path_); }

  // Unmounts, and removes everything. Server and mount must have ended. Errors: what is left.
  base::Status remove();

 private:
  VolumeDirectory(std::string path, base::UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  base::UniqueFd lock_;
};

// Returns the directory of an attempt of this job that has one here, for its steps; empty if there
// is none.
std::string find_volume_of(const std::string& path, base::JobId job);

struct SweepResult {
  std::uint32_t removed = 0;
  std::string left;  // the first one that could not be removed, and why; empty: none
};

// Removes the volumes of this user in PATH whose shepherds have ended.
SweepResult sweep_volumes(const std::string& path);

}  // namespace score::shepherd
