#pragma once
// Leadership decides which of two heads is in charge, and which changes it may acknowledge. Each
// head has one object; the nodes are the witnesses. It has no I/O: replies and `now` go in, actions
// come out.
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
// acknowledges a change when the follower has stored it. Without a current follower it does so
// after a majority of the nodes have noted that the other head lacks changes.

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
  Candidate,  // requests leases in a new term
  Leader,     // in charge while the leases of its quorum are valid
};

// The caller must send the request to every node and to the other head.
struct AskWitnesses {
  LeaseRequest request;
};

// The caller must make the term durable and then call term_stored().
struct StoreTerm {
  Epoch term;
};

// The head takes charge: the caller opens its state and writes its first transaction in this term.
struct TakeCharge {
  Epoch term;
};

// The head is no longer in charge, as of now.
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
    bool is_forced = false;  // an administrator declares the other head lost for good
  };

  // `position` is the end of this head's log, `term` the greatest term that it has stored.
  Leadership(const Settings& settings, LogPosition position, Epoch term, TimePoint now);

  // Answers a request of the other head.
  LeaseReply answer(const LeaseRequest& request, TimePoint now);
  // These take the replies of the witnesses. Late, repeated and lost replies do no harm.
  LeadershipActions node_replied(std::size_t node, const LeaseReply& reply, TimePoint now);
  LeadershipActions other_replied(const LeaseReply& reply, TimePoint now);

  // The connection to the other head has broken: its last reply does not count any more.
  void other_gone() { other_.last.reset(); }

  LeadershipActions term_stored(Epoch term, TimePoint now);
  LeadershipActions tick(TimePoint now);
  [[nodiscard]] TimePoint next_deadline() const;

  // ---- the log
  // The follower has stored the other head's log up to here.
  void stored(LogPosition position) { position_ = position; }

  // The head in charge has its own log on its disk up to here.
  void committed(std::uint64_t sequence) { position_.sequence = sequence; }

  // The follower has stored the log up to here and gets every change that follows. It is current if
  // it has all acknowledged changes; otherwise the caller must call this again when it has stored
  // more.
  LeadershipActions follower_current(std::uint64_t sequence, TimePoint now);
  // The current follower has stored the log up to here.
  void follower_stored(std::uint64_t sequence);
  LeadershipActions follower_lost(TimePoint now);

  // Returns the last transaction of this term that may be acknowledged, with all before it.
  [[nodiscard]] std::uint64_t acknowledged(TimePoint now);

  [[nodiscard]] LeadershipRole role() const { return role_; }

  [[nodiscard]] Epoch term() const { return term_; }

  [[nodiscard]] LogPosition position() const { return position_; }

  [[nodiscard]] bool is_in_charge(TimePoint now) const;

  [[nodiscard]] bool has_current_follower() const { return follower_.has_value(); }

  // Returns the reason why this head does not lead, as text for users. The result is empty if it
  // leads.
  [[nodiscard]] std::string why_not(TimePoint now) const;

 private:
  struct Vote {
    std::optional<LeaseReply> last;  // newest by `sent`
    TimePoint until{};               // end of the lease in term_
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
  Witness own_;  // this head's vote, for itself and for the other head
  LeadershipRole role_ = LeadershipRole::Follower;
  LogPosition position_;
  Epoch term_;  // Candidate, Leader: its own; else the greatest known
  bool is_term_stored_ = false;
  TimePoint candidacy_ends_{};
  TimePoint next_{};
  Vote other_;
  std::vector<Vote> nodes_;
  LogMark mark_;                           // as the head in charge
  std::optional<std::uint64_t> follower_;  // set if it is current; it has stored the log up to here
  std::uint64_t acknowledged_ = 0;
};

}  // namespace score::gang
