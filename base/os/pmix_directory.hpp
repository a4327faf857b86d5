#pragma once
// The directory of a PMIx server's files. It lies where all users' temporary files do, so it has a
// lock as long as its maker lives: one whose lock is free was left by a process that was
// killed, and goes with the next that is made, or with the virtual cluster it was of.

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

  // Made with mode 0700 in shared memory, else in /tmp, after what others left there was removed.
  // Errors: errno codes.
  [[nodiscard]] static Result<PmixDirectory> make();
  // The same in one place.
  [[nodiscard]] static Result<PmixDirectory> make_in(const std::string& parent);

  // Removes it with all that is in it; a second time nothing.
  void remove();

  // Empty: none, or removed.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  PmixDirectory(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;  // flock of the directory itself
};

// Removes those of this process's user that are not locked; gives how many. Links are not
// followed.
int remove_abandoned_pmix_directories();
int remove_abandoned_pmix_directories_in(const std::string& parent);

}  // namespace score::inline base
