#pragma once
// FenceCollector has the PMI barriers (fences) of all attempts and shares the head's memory and
// time between users. The class is pure: it takes events and returns actions.
//
// A user has a budget for key-values that nodes send when they enter; beyond it they are dropped
// and fetched later. Results are passed on in the order in which the user's fences are complete,
// and wait while others of this user fill the queues of connections. So a user with many or large
// fences delays only their own jobs.

#include "scored/head/fences/fence.hpp"

#include <compare>
#include <deque>
#include <map>

namespace score::head {

class FenceCollector {
 public:
  struct Key {
    AttemptId attempt;
    bool pmix = false;  // PMI-1 and PMIx count separately: a script may use both
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  struct Due {
    Key key;
    FenceAction action;
  };

  using Actions = std::vector<Due>;

  // A user's key-values that are in memory while their fences wait for nodes.
  static constexpr std::uint64_t kMaxHeld = 8 * limits::kMiB;
  // Limits what nodes of an older release have sent, and the results that they need as a whole.
  static constexpr std::uint64_t kMaxWhole = 32 * limits::kMiB;
  // Limits the bytes of a user's results in the queues of connections.
  static constexpr std::uint64_t kMaxInFlight = 8 * limits::kMiB;

  // Lets the attempt's nodes 0 ... nodes-1 enter. A second call changes nothing.
  void open(AttemptId attempt, UserId user, std::size_t nodes);
  // Drops all state of an attempt that has ended; an unknown attempt is ignored. Returns what
  // fences of other attempts may do now.
  Actions close(AttemptId attempt);

  // Each handles an event of Fence. Errors: as there; NotFound (attempt not open), TooLarge (beyond
  // the user's budget for nodes of an older release). The attempt cannot continue after an error.
  Result<Actions> enter(Key key, std::size_t node, FenceEntry entry);
  Result<Actions> piece(Key key, std::size_t node, std::uint64_t sequence, std::uint64_t offset,
                        std::string data);
  Result<Actions> taken(Key key, std::size_t node, std::uint64_t sequence, std::uint64_t offset,
                        std::uint64_t total);
  Actions leave(AttemptId attempt, std::size_t node);
  void link_lost(AttemptId attempt, std::size_t node);

  [[nodiscard]] std::size_t open_fences() const { return fences_.size(); }

  // Returns the bytes of key-values that are in memory for a user's fences.
  [[nodiscard]] std::uint64_t held_bytes(UserId user) const;

 private:
  struct Open {
    UserId user;
    Fence fence;
    std::uint64_t held = 0;       // of the user's share
    std::uint64_t in_flight = 0;  // likewise
    bool waits = false;           // in Share::waiting
  };

  struct Share {
    std::size_t fences = 0;
    std::uint64_t held = 0;
    std::uint64_t in_flight = 0;
    std::deque<Key> waiting;  // complete fences
  };

  Result<Open*> find(Key key);
  // Adds the actions of a fence, then those of fences that may begin now.
  Result<Actions> carry_on(Key key, Open& open, Result<FenceActions> actions);
  void account(Open& open);
  void start_waiting(Share& share, Actions& actions);
  static void add(Key key, FenceActions&& from, Actions& to);

  std::map<Key, Open> fences_;
  std::map<UserId, Share> shares_;
};

}  // namespace score::head
