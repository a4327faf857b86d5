#pragma once
// Removes what jobs have left of their volumes in [pario] path, and the shared memory of their MPI
// libraries. A shepherd without an attempt does it as the user. A shepherd removes what its own job
// left, but one that was killed cannot, and this daemon may neither unmount nor remove what belongs
// to users.

#include "scored/node/attempts/shepherd_start.hpp"

#include <set>
#include <string>

namespace score::node {

class VolumeSweeps {
 public:
  // `parts` and `shepherds` must outlive it. path: empty if there are no volumes here.
  VolumeSweeps(const AttemptParts& parts, const ShepherdStart& shepherds, std::string path)
      : parts_(parts), shepherds_(shepherds), path_(std::move(path)) {}

  VolumeSweeps(const VolumeSweeps&) = delete;
  VolumeSweeps& operator=(const VolumeSweeps&) = delete;

  // Calls sweep() for each user with a directory there.
  void sweep_all();
  // A volume whose shepherd is alive stays, and so does shared memory that a process uses.
  void sweep(UserId user);

  [[nodiscard]] bool is_busy() const { return !users_.empty(); }

  // Waits until the space that is being released is free, at most kMostWait.
  asio::awaitable<void> wait();

 private:
  asio::awaitable<void> run(UserId user);
  asio::awaitable<Result<bool>> run_once(UserId user);  // true: nothing is left

  const AttemptParts& parts_;
  const ShepherdStart& shepherds_;
  std::string path_;
  std::set<UserId> users_;  // being swept
  std::set<UserId> again_;  // more was left during their sweep
};

}  // namespace score::node
