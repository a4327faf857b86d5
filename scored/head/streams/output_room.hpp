#pragma once
// OutputRoom bounds the output of each user's jobs that waits in the head for front ends. What
// finds no room is refused: its shepherd keeps it and sends it again when it is asked to. The class
// is pure; it counts bytes and remembers who must be asked.
//
// One half of a user's room is for all of the jobs. The other half is divided by the number of
// jobs, so output of a job whose front end reads goes on while the front ends of others do not.

#include "base/ids.hpp"
#include "base/limits.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

namespace score::head {

class OutputRoom {
 public:
  static constexpr std::size_t kHalf = 8 * limits::kMiB;  // of a user's room

  // Names a shepherd by its job and node. A new attempt of the job has the same places.
  struct Place {
    JobId job;
    std::uint32_t node_index = 0;

    friend auto operator<=>(const Place&, const Place&) = default;
  };

  // A job of the user has streams. Each open() is followed by one close().
  void open(UserId user) { ++users_[user].jobs; }

  void close(UserId user, JobId job);

  // Returns how many more bytes a job may hold that holds `held` bytes now.
  [[nodiscard]] std::size_t room(UserId user, std::size_t held) const;
  // A job of the user held `before` bytes and holds `now` bytes.
  void change(UserId user, std::size_t before, std::size_t now);

  // Output from there was refused.
  void refuse(UserId user, const Place& place);
  // Output from there has come although earlier output was refused, so it is the repetition.
  void came(UserId user, const Place& place);
  // The place sends everything again without being asked, or nothing any more.
  void forget(UserId user, const Place& place);
  // Returns the places of the user that are to repeat now what was refused, because all of the jobs
  // have room. The caller asks them.
  [[nodiscard]] std::vector<Place> take_due(UserId user);
  // Returns all places of the job that are to repeat what was refused, whatever the room is.
  [[nodiscard]] std::vector<Place> take_all(UserId user, JobId job);

  // Returns the part of the room that is for each of the user's jobs.
  [[nodiscard]] std::size_t share(UserId user) const;
  [[nodiscard]] std::size_t jobs(UserId user) const;
  [[nodiscard]] std::size_t held(UserId user) const;

 private:
  struct User {
    std::size_t jobs = 0;
    std::size_t held = 0;
    std::deque<Place> refused;  // in the order in which they will be asked
    std::set<Place> asked;      // and not come yet; each may send a window
  };

  std::map<UserId, User> users_;  // with jobs
};

}  // namespace score::head
