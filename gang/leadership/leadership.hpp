#pragma once
// Which of two heads is in charge, and which changes the one in charge may acknowledge. Each head
// has one of these; the nodes are the witnesses. Pure: replies and `now` in, actions out.
//
//   Follower --no lease of the other head is valid, and this log is complete--> Candidate
//   Candidate --leases of a quorum--> Leader;  Candidate --none in time--> Follower
//   Leader --the leases of its quorum have ended--> Follower
//
// A quorum is this head with the other head, or with a majority of the nodes. Any two quorums have
// a member in common, so two heads never hold valid leases at once.
//
// A log is complete if the other head's is not longer, or if the newest mark of a majority of the
// nodes, all of which have one, includes this head. The head in charge keeps that true: it
// acknowledges a change when the follower has stored it, or, without a current follower, after a
// majority of the nodes have noted that the other head lacks changes.

#include "gang/leadership/lease.hpp"
#include "gang/leadership/witness.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace score::gang {

enum class LeadershipRole : std::uint8_t {
  Follower,   // waits for the other head's leases to end, or follows its log
  Candidate,  // asks for leases in a term of its own
  Leader,     // in charge while the leases of its quorum are valid
};

// Sends the request to every node and to the other head.
struct AskWitnesses {
  LeaseRequest request;
};

// Makes the term durable, then calls term_stored().
struct StoreTerm {
  Epoch term;
};

// Becomes the head in charge: opens its state, writes its first transaction in this term.
struct TakeCharge {
  Epoch term;
};

// Is not in charge any more, at once.
struct StandDown {
  std::string why;
};

using LeadershipAction = std::variant<AskWitnesses, StoreTerm, TakeCharge, StandDown>;
using LeadershipActions = std::vector<LeadershipAction>;

class Leadership {
 public:
  struct Settings {
    HeadIndex self = 0;
    std::size_t nodes = 0;
    LeaseTiming timing;
    bool is_forced = false;  // an administrator says that the other head is lost for good
  };

  // position: of this head's log. term: the greatest that it has stored.
  Leadership(const Settings& settings, LogPosition position, Epoch term, TimePoint now);

  // The other head asks.
  LeaseReply answer(const LeaseRequest& request, TimePoint now);
  // Answers of the witnesses. Late, repeated and lost ones do no harm.
  LeadershipActions node_replied(std::size_t node, const LeaseReply& reply, TimePoint now);
  LeadershipActions other_replied(const LeaseReply& reply, TimePoint now);

  // The connection to it broke: what it said last does not count any more.
  void other_gone() { other_.last.reset(); }

  LeadershipActions term_stored(Epoch term, TimePoint now);
  LeadershipActions tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;

  // ---- the log
  // As a follower: it has stored the other head's log up to here.
  void stored(LogPosition position) { position_ = position; }

  // As the head in charge: its own log is on its disk up to here.
  void committed(std::uint64_t sequence) { position_.sequence = sequence; }

  // The follower has stored the log up to here, and gets every change that follows. It is current
  // if it has all that is acknowledged; else call it again when it has stored more.
  LeadershipActions follower_current(std::uint64_t sequence, TimePoint now);
  // Later: up to here.
  void follower_stored(std::uint64_t sequence);
  LeadershipActions follower_lost(TimePoint now);

  // Transactions of this term up to this one may be acknowledged.
  [[nodiscard]] std::uint64_t acknowledged(TimePoint now);

  [[nodiscard]] LeadershipRole role() const { return role_; }

  [[nodiscard]] Epoch term() const { return term_; }

  [[nodiscard]] LogPosition position() const { return position_; }

  [[nodiscard]] bool is_in_charge(TimePoint now) const;

  [[nodiscard]] bool has_current_follower() const { return follower_.has_value(); }

  // Why it does not lead, in words, for people. Empty: it leads.
  [[nodiscard]] std::string why_not(TimePoint now) const;

 private:
  struct Vote {
    std::optional<LeaseReply> last;  // newest by `sent`
    TimePoint until{};               // of the lease in term_
    bool is_granted = false;         // in term_
  };

  void keep(Vote& vote, const LeaseReply& reply);

  [[nodiscard]] std::size_t majority() const { return settings_.nodes / 2 + 1; }

  [[nodiscard]] bool may_stand(TimePoint now) const;
  [[nodiscard]] bool other_agrees(TimePoint now) const;
  [[nodiscard]] bool nodes_agree(TimePoint now) const;
  [[nodiscard]] bool is_complete(const LogMark& newest) const;
  [[nodiscard]] bool can_vouch(const Vote& vote) const;
  [[nodiscard]] bool is_fresh(const Vote& vote, TimePoint now) const;
  [[nodiscard]] bool is_elected(TimePoint now) const;
  [[nodiscard]] TimePoint leases_end() const;
  [[nodiscard]] bool is_mark_noted() const;
  LeadershipActions advance(TimePoint now);
  LeadershipActions stand(TimePoint now);
  LeadershipActions stand_down(const char* why);
  LeadershipAction ask(TimePoint now);
  void forget_votes();

  Settings settings_;
  Witness own_;  // this head's word, for itself and for the other head
  LeadershipRole role_ = LeadershipRole::Follower;
  LogPosition position_;
  Epoch term_;  // Candidate, Leader: its own; else the greatest it knows
  bool is_term_stored_ = false;
  TimePoint gives_up_{};  // as a candidate
  TimePoint next_{};
  Vote other_;
  std::vector<Vote> nodes_;
  LogMark mark_;                           // as the head in charge
  std::optional<std::uint64_t> follower_;  // it is current: up to here it has stored the log
  std::uint64_t acknowledged_ = 0;
};

}  // namespace score::gang
