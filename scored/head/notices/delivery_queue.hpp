#pragma once
// DeliveryQueue holds the notices that wait to be sent through one channel, and decides when each
// is sent, sent again, or given up. It is pure: `now` is an argument.
//
// A full queue drops its oldest notice, and a user with a full share the oldest one of that user,
// so that an array with a million tasks cannot displace the notices of others. A notice that failed
// waits, and the ones behind it go first.

#include "base/shares.hpp"
#include "base/time.hpp"
#include "scored/head/notices/notice.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

namespace score::head {

struct DeliveryRules {
  Share share;                // places in all and per user
  std::size_t at_once = 1;    // notices that are being sent
  std::uint32_t tries = 5;    // in all
  Duration first_pause = 5s;  // before the second try; doubles with each
  Duration longest_pause = 120s;
};

class DeliveryQueue {
 public:
  // Outcome is how one try ended.
  enum class Outcome : std::uint8_t {
    Sent,
    Failed,   // it may succeed later
    Refused,  // it would fail again
  };

  enum class Verdict : std::uint8_t { Sent, WillRetry, GivenUp };

  struct Delivery {
    std::uint64_t key = 0;  // for settle()
    Notice notice;
  };

  explicit DeliveryQueue(DeliveryRules rules) : rules_(rules), taken_(rules.share) {}

  // Returns the number of notices that were dropped for it: 0 or 1.
  std::size_t add(Notice notice, TimePoint now);
  // Returns the next notice to send now; nullopt: none is due, or enough are being sent.
  [[nodiscard]] std::optional<Delivery> take(TimePoint now);
  // Reports how a taken notice ended.
  Verdict settle(std::uint64_t key, Outcome outcome, TimePoint now);

  // Returns when take() can return a notice; nullopt: not before add() or settle().
  [[nodiscard]] std::optional<TimePoint> next_time() const;

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

  [[nodiscard]] bool is_sending() const { return sending_ > 0; }

  [[nodiscard]] std::size_t size_of(UserId user) const { return taken_.taken_by(user); }

 private:
  struct Entry {
    std::uint64_t key = 0;
    Notice notice;
    std::uint32_t tries = 0;
    TimePoint due{};
    bool is_sending = false;
  };

  void erase(std::list<Entry>::iterator entry);
  std::size_t make_room(UserId user);

  DeliveryRules rules_;
  std::list<Entry> entries_;  // the oldest first
  ShareCounter<UserId> taken_;
  std::size_t sending_ = 0;
  std::uint64_t last_key_ = 0;
};

}  // namespace score::head
