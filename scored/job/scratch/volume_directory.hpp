#pragma once
// The directory of a job's volume on this node is PATH/USER/ATTEMPT.INDEX. It contains `data` (the
// server's), `mount` and `volume` (the description, with the key). PATH is [pario] path of the
// node, INDEX the node's number in the job. PATH/USER belongs to the user and is private; root
// creates it, unless the node daemon runs as the user.
//
// Tasks find the volume at PATH/USER/ATTEMPT, a link to the mount. This name is the same on all
// nodes whose PATH is, so one task can pass a file name to another. Nodes that share a host (of
// virtual clusters) share the link too: the first one makes it, to its own mount, and the others
// use that, which shows the same files.
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
  struct Part {  // the part of a job's volume that a node has
    base::AttemptId attempt;
    std::uint32_t index = 0;
  };

  // Creates the directory, empty, and the link; leftovers of the same part are removed. Errors: one
  // line for the user.
  static base::Result<VolumeDirectory> make(const std::string& path, Part part);

  // Returns the directory of any part of this user; it need not exist.
  static std::string path_of(const std::string& path, Part part);
  // Returns the link, PATH/USER/ATTEMPT, that belongs to a directory.
  static std::string link_of(const std::string& directory);
  static std::string mount_of(const std::string& directory);
  static std::string description_of(const std::string& directory);

  [[nodiscard]] std::string data() const { return path_ + "/data"; }

  [[nodiscard]] std::string mount() const { return mount_of(path_); }

  [[nodiscard]] std::string description() const { return description_of(path_); }

  // Unmounts, and removes everything, and the link if it leads here. Server and mount must have
  // ended. Errors: what is left.
  base::Status remove();

 private:
  VolumeDirectory(std::string path, base::UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  base::UniqueFd lock_;
};

// Returns a directory of this job here, for its steps; empty if there is none.
std::string find_volume_of(const std::string& path, base::JobId job);

struct SweepResult {
  std::uint32_t removed = 0;
  std::string left;  // the first one that could not be removed, and why; empty: none
};

// Removes the volumes of this user in PATH whose shepherds have ended.
SweepResult sweep_volumes(const std::string& path);

}  // namespace score::shepherd
