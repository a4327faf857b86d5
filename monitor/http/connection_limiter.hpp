#pragma once
// ConnectionLimiter enforces the limits of connections and requests, in total and per peer. It is
// pure. A connection is silent until it has sent a complete request, and again after each answer.
// When a limit is reached, the oldest silent connection is closed. So silent connections cannot
// keep other clients out, even from the same address, which all users of this host share.

#include "base/async/token_bucket.hpp"
#include "base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>

namespace score::monitor {

class ConnectionLimiter {
 public:
  using ConnectionId = std::uint64_t;

  struct Limits {
    std::size_t connections = 0;
    std::size_t connections_per_peer = 0;
    double requests_per_second = 500;  // per peer
    double request_burst = 500;
    Duration token_time{500'000};  // a request that takes longer counts as more than one
  };

  struct Verdict {
    bool may_enter = false;
    std::optional<ConnectionId> leaves;  // close this one
  };

  explicit ConnectionLimiter(Limits limits) : limits_(limits) {}

  // Decides on a new connection; an admitted connection is counted until left(). Each id must be
  // unique.
  [[nodiscard]] Verdict enter(ConnectionId id, const std::string& peer);
  void left(ConnectionId id);
  // Notes that a complete request of the connection has arrived, or that it was answered.
  void request_arrived(ConnectionId id);
  void answered(ConnectionId id);

  // Returns true if a request of this peer, or of this logged-in user, may be carried out now.
  [[nodiscard]] bool may_ask(const std::string& asker, TimePoint now);
  void charge(const std::string& asker, TimePoint now, Duration took);

  [[nodiscard]] std::size_t size() const { return open_.size(); }

 private:
  struct Open {
    std::string peer;
    bool is_silent = true;
    std::list<ConnectionId>::iterator place;  // in silent_, if it is silent
  };

  static constexpr std::size_t kMaxAskers = 4'096;

  void leave_silence(Open& open);
  [[nodiscard]] std::optional<ConnectionId> oldest_silent(const std::string* of_peer) const;
  [[nodiscard]] const std::string* largest_peer() const;
  TokenBucket& budget(const std::string& asker, TimePoint now);

  Limits limits_;
  std::map<ConnectionId, Open> open_;
  std::map<std::string, std::size_t> of_peer_;
  std::list<ConnectionId> silent_;  // oldest first
  std::map<std::string, TokenBucket> budgets_;
};

}  // namespace score::monitor
