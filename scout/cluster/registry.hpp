// The directories of clusters of one kind: one private directory per user, in it one per cluster.
// The supervisor of a cluster holds a lock in its directory while it runs. A directory whose lock
// is free was left behind by a supervisor that was killed, and the next start removes it.
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <string>
#include <vector>

namespace score::scout {

// A cluster's directory and its lock, held while the cluster runs.
struct ClusterDirectory {
  std::string path;
  UniqueFd lock;  // flock; close-on-exec, so that no daemon keeps it
};

class Registry {
 public:
  // $XDG_RUNTIME_DIR/NAME, else NAME-UID in $TMPDIR or /tmp; made with mode 0700. If that name is
  // occupied by something else than our own private directory, NAME-UID.XXXXXX.
  static Result<Registry> open(const std::string& name);

  // Removes dead clusters, then makes a directory (0700) and takes its lock.
  Result<ClusterDirectory> create();
  // Directories whose lock is held.
  [[nodiscard]] std::vector<std::string> living() const;
  // Removes every dead cluster: processes, cgroup, files. Gives how many.
  int sweep();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit Registry(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;  // taken while directories are made or swept
};

// True if some process holds the lock of the cluster's directory.
bool is_alive(const std::string& directory);
// Kills what is left of a cluster and removes its directory.
Status clear_directory(const std::string& directory);
// Removes the directory. Two processes may do so at the same time.
Status remove_files(const std::string& directory);

// Waits, at most 15 s, until the directory is gone.
bool wait_until_gone(const std::string& directory);

inline constexpr const char* kVirtualRegistry = "scored-virtual";
inline constexpr const char* kLockFile = "lock";
inline constexpr const char* kCgroupPrefix = "scored-virtual-";  // of the last part of that path
inline constexpr const char* kCgroupFile = "cgroup";  // holds the path of the cluster's cgroup

}  // namespace score::scout
