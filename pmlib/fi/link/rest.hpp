// An MPI does not sleep: it reads its completion queue while it waits. A thread that has read in
// vain for long sleeps inside of a read, for a moment and until anything arrives. Meanwhile it
// holds no lock of the link's: other threads send and receive, and end the sleep.
//
// A thread that may not sleep, because its call may end by other means than PM, goes on polling. If
// it polls in vain, the context says so, and the node gives its processor to others.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/fi/link/lock.hpp"
#include "pmlib/fi/link/receiver.hpp"
#include "pmlib/fi/link/requests.hpp"
#include "pmlib/fi/link/rest_rule.hpp"
#include "pmlib/fi/link/sender.hpp"
#include "pmlib/fi/link/silence.hpp"
#include "pmlib/fi/link/transfers.hpp"
#include "pmlib/fi/link/wait_set.hpp"
#include "pmlib/fi/peers/peers.hpp"

#include <cstdint>
#include <functional>

namespace score::pm::fi {

struct Poller;

// The parts of a link that a rest depends on.
struct RestParts {
  pm::Endpoint& pm;
  LinkLock& lock;
  WaitSet& wait_set;
  Silence& silence;
  const Peers& peers;
  const Requests& requests;
  const Sender& sender;
  const Transfers& transfers;
  const Receiver& receiver;
};

class Rest {
 public:
  // `has_near_ranks` is also true if it is not known.
  Rest(const RestParts& parts, bool has_near_ranks)
      : parts_(parts), has_near_ranks_(has_near_ranks) {}

  // Returns true if the calling thread has polled in vain for long. It then calls begin_poll()
  // before it polls, and take() after that, both without the lock.
  bool is_due() const { return parts_.silence.is_long() && may_rest_; }

  void begin_poll() const;

  // Sleeps for a moment if this thread polls and does nothing else: until a message comes, another
  // thread sends, or the wait set is woken. Does not sleep if `has_news`, which is called with the
  // lock, returns true. Must be called without the lock. Returns true if the caller should poll
  // again.
  bool take(const std::function<bool()>& has_news);

  // Notes that a receive with FI_PEEK has asked for a message.
  void note_peek() { ++peeks_; }

 private:
  std::int64_t longest_rest(Poller& poller);
  bool try_rest(Poller& poller, const std::function<bool()>& has_news);
  void look(Poller& poller);
  void check_watched_call(Poller& poller);
  void publish(Poller& poller, bool is_vain) const;
  [[nodiscard]] WaitFacts facts_of(const Poller& poller) const;
  void note_wait(const Poller& poller) const;

  bool has_late_work() const { return parts_.sender.has_queued() || parts_.peers.has_unready(); }

  RestParts parts_;
  bool has_near_ranks_;
  bool may_rest_ = poll_us_from_environment() >= 0;
  bool never_sleeps_ = false;  // its vain polls are published
  std::uint32_t peeks_ = 0;    // modulo 2^32
};

}  // namespace score::pm::fi
