#pragma once
// The follower: stores what the head in charge ships. The store belongs to a thread of its own, in
// the order of the frames, so that a slow disk does not delay the answers to lease requests.
// Thread: the loop's.

#include "base/async/blocking_calls.hpp"
#include "base/os/fd.hpp"
#include "scored/head/heads/charge.hpp"
#include "scored/head/store/store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace score::head {

class LogFollower {
 public:
  struct Parts {  // all outlive it
    Clock& clock;
    Charge& charge;
    BlockingCalls& disk;   // one thread
    Store& store;          // used on that thread alone
    std::string incoming;  // file for a copy of the other head's database
  };

  // broken: the store cannot be used any more; the process must start again.
  LogFollower(Parts parts, std::function<void(const Error&)> broken)
      : parts_(std::move(parts)), broken_(std::move(broken)) {}

  // Asks for the log, unless it follows already; again if there is no answer, as from a head that
  // has just been elected. Called several times per lease.
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
  std::uint64_t missing_ = 0;  // bytes of the copy
  gang::LogPosition copied_;
  std::size_t waiting_bytes_ = 0;  // of changes that are not on disk yet
};

}  // namespace score::head
