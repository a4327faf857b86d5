#pragma once
// LogFollower stores what the head in charge ships. Only its disk thread uses the store, in the
// order of the frames, so a slow disk does not delay the answers to lease requests. Thread: the
// loop's.

#include "base/async/blocking_calls.hpp"
#include "base/os/fd.hpp"
#include "scored/head/process/leader_election.hpp"
#include "scored/head/store/store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace score::head {

class LogFollower {
 public:
  struct Parts {  // all must outlive the object
    Clock& clock;
    LeaderElection& election;
    BlockingCalls& disk;   // one thread
    Store& store;          // used on that thread only
    std::string incoming;  // file for a copy of the other head's database
  };

  // Calls `broken` when the store cannot be used any more; the process must then restart.
  LogFollower(Parts parts, std::function<void(const Error&)> broken)
      : parts_(std::move(parts)), broken_(std::move(broken)) {}

  // Asks for the log, unless this head already follows. It asks again if there is no answer,
  // because a head that has just been elected may not answer. Must be called several times per
  // lease.
  void follow();
  void frame(const proto::InFrame& frame);
  void lost();

 private:
  void begin(const proto::InFrame& frame);
  void part(const proto::InFrame& frame);
  void install();
  void changes(const proto::InFrame& frame);
  void done(gang::LogPosition position, std::uint64_t stream, const Status& status);
  void give_up(const std::string& why);

  Parts parts_;
  std::function<void(const Error&)> broken_;
  bool follows_ = false;
  bool is_answered_ = false;
  TimePoint asked_{};
  std::uint64_t stream_ = 0;
  UniqueFd file_;
  std::uint64_t missing_ = 0;  // bytes of the copy that have not arrived
  gang::LogPosition copied_;
  std::size_t waiting_bytes_ = 0;  // of changes that are not on disk yet
};

}  // namespace score::head
