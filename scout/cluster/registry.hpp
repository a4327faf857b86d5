// Manages the directories of clusters of one kind. Each user has one private directory, which
// contains one per cluster. The supervisor of a cluster holds a lock in its directory while it
// runs. A directory whose lock is free was left behind by a supervisor that was killed, and the
// next start removes it.
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace score::scout {

// Holds a cluster's directory and its lock, which is held while the cluster runs.
struct ClusterDirectory {
  std::string path;
  UniqueFd lock;  // flock; close-on-exec, so that no daemon keeps it
};

class Registry {
 public:
  // Opens $XDG_RUNTIME_DIR/NAME, else NAME-UID in $TMPDIR or /tmp, and creates it with mode 0700 if
  // necessary. If that name is not our own private directory, it uses NAME-UID.XXXXXX instead.
  static Result<Registry> open(const std::string& name);

  // Removes dead clusters, then creates a directory (0700) and takes its lock.
  Result<ClusterDirectory> create();
  // Returns the directories whose lock is held, of all registries that open() may have chosen when
  // the variables had other values.
  static std::vector<std::string> living(const std::string& name);
  // Removes every dead cluster: processes, cgroup, files.
  void sweep();

 private:
  explicit Registry(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;  // taken while directories are created or swept
};

// Creates one directory with exactly this mode. Errors: errno codes.
Status make_directory(const std::string& path, mode_t mode = 0700);
// Returns true if some process holds the lock of the cluster's directory.
bool is_alive(const std::string& directory);
// Kills the remaining processes of a cluster and removes its directory.
Status clear_directory(const std::string& directory);
// Removes the directory. Two processes may do so at the same time.
Status remove_files(const std::string& directory);

// Waits until the directory is gone, for at most 15 s. Returns false if it still exists then.
bool wait_until_gone(const std::string& directory);

inline constexpr const char* kVirtualRegistry = "scored-virtual";
inline constexpr const char* kLockFile = "lock";
inline constexpr const char* kCgroupPrefix = "scored-virtual-";  // and the directory's name
inline constexpr const char* kCgroupFile = "cgroup";  // holds the path of the cluster's cgroup

}  // namespace score::scout
