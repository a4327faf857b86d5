#pragma once
// A PmixDirectory is the directory of a PMIx server's files. It lies where the temporary files of
// all users do, so it is locked as long as its maker lives. A directory whose lock is free was left
// by a killed process. It is removed when the next directory is made, or with the virtual cluster
// that it belonged to.

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <string>

namespace score::inline base {

class PmixDirectory {
 public:
  PmixDirectory() = default;
  PmixDirectory(PmixDirectory&& other) noexcept;
  PmixDirectory& operator=(PmixDirectory&& other) noexcept;

  ~PmixDirectory() { remove(); }

  // Makes a directory with mode 0700 in shared memory, else in /tmp, after removing abandoned ones.
  // Errors: errno codes.
  [[nodiscard]] static Result<PmixDirectory> make();
  // Makes the directory in `parent`.
  [[nodiscard]] static Result<PmixDirectory> make_in(const std::string& parent);

  // Removes the directory with all its content. A second call does nothing.
  void remove();

  // Returns the path; it is empty if there is no directory or it was removed.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  PmixDirectory(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;  // flock of the directory itself
};

// Removes the unlocked directories of this process's user and returns their number. Links are not
// followed.
int remove_abandoned_pmix_directories();
int remove_abandoned_pmix_directories_in(const std::string& parent);

}  // namespace score::inline base
