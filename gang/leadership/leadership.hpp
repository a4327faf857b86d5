#pragma once
// Leadership decides which of two heads is in charge, and which changes it may acknowledge. Each
// head has one object; some nodes are the witnesses. It has no I/O: replies and `now` go in,
// actions come out.
//
//   Follower --no lease of the other head is valid, and this log is complete--> Candidate
//   Candidate --leases of a quorum--> Leader;  Candidate --none in time--> Follower
//   Leader --the leases of its quorum have ended--> Follower
//
// A quorum is this head with the other head, or with a majority of the witnesses. Any two quorums
// have a member in common, so two heads never hold valid leases at once.
//
// A log is complete if the other head's is not longer, or if the newest mark of a majority of the
// witnesses, all of which have one, includes this head. In both cases it must also reach the
// position of the marks: a disk that ends before is an older copy. The head in charge keeps that
// true: it acknowledges a change when the follower has stored it and a majority of the witnesses
// have noted its position. Without witnesses the follower's disk suffices; without a current
// follower the witnesses' note that only this head has the change.
//
// Terms of the first head are even, those of the second odd, so two heads never share a term. Votes
// are durable.

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

// The caller must send the request to every witness, and unless `is_note` to every other node and
// to the other head.
struct AskWitnesses {
  LeaseRequest request;
  bool is_note = false;  // only a new position for the witnesses
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

// Override is an administrator's decision, for one election.
enum class Override : std::uint8_t {
  None,
  OtherIsLost,  // leads without knowing whether the other head has more
  AcceptsLoss,  // leads even if it is known that acknowledged changes are missing
};

using LeadershipAction = std::variant<AskWitnesses, StoreTerm, TakeCharge, StandDown>;
using LeadershipActions = std::vector<LeadershipAction>;

class Leadership {
 public:
  struct Settings {
    HeadIndex self = 0;
    std::size_t witnesses = 0;
    std::size_t liars = 0;  // witnesses that may answer anything, in every quorum's size
    // The witnesses note each change before it is acknowledged. Otherwise they learn the position
    // with the leases, so an older copy of a disk is recognized only if it is older than a period.
    bool notes_changes = true;
    LeaseTiming timing;
    Override override_by = Override::None;
  };

  // `position` is the end of this head's log.
  Leadership(const Settings& settings, LogPosition position, StoredTerms terms, TimePoint now);

  // Answers a request of the other head. If this grants a lease in a new term, the caller must make
  // that term durable before it sends the answer.
  LeaseReply answer(const LeaseRequest& request, TimePoint now);
  // These take the replies of the witnesses. Late, repeated and lost replies do no harm.
  LeadershipActions witness_replied(std::size_t witness, const LeaseReply& reply, TimePoint now);
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
  LeadershipActions committed(std::uint64_t sequence, TimePoint now);

  // The follower has stored the log up to here and gets every change that follows. It is current if
  // it has all acknowledged changes; otherwise the caller must call this again when it has stored
  // more.
  LeadershipActions follower_current(std::uint64_t sequence, TimePoint now);
  // The current follower has stored the log up to here.
  LeadershipActions follower_stored(std::uint64_t sequence, TimePoint now);
  LeadershipActions follower_lost(TimePoint now);

  // Returns the last transaction of this term that may be acknowledged, with all before it.
  [[nodiscard]] std::uint64_t acknowledged(TimePoint now);

  [[nodiscard]] LeadershipRole role() const { return role_; }

  [[nodiscard]] Epoch term() const { return term_; }

  [[nodiscard]] LogPosition position() const { return position_; }

  [[nodiscard]] bool is_in_charge(TimePoint now) const;

  [[nodiscard]] bool has_current_follower() const { return follower_.has_value(); }

  // Returns true if a quorum of the witnesses notes the changes of this head in charge. If not,
  // only the disks of both heads have them, and an older copy of one of them cannot be recognized.
  [[nodiscard]] bool has_witnesses(TimePoint now) const;

  // Returns true if a quorum of the witnesses has granted this head its leases.
  [[nodiscard]] bool has_leases(TimePoint now) const;

  // Returns true if changes that the cluster has are missing on this head's disk.
  [[nodiscard]] bool is_behind() const { return position_ < known_; }

  // Returns true if Override::AcceptsLoss has decided the last election.
  [[nodiscard]] bool has_accepted_loss() const { return has_accepted_loss_; }

  // Returns the reason why this head does not lead, as text for users. The result is empty if it
  // leads.
  [[nodiscard]] std::string why_not(TimePoint now) const;

 private:
  friend struct LeadershipState;  // reads all members for an exhaustive search (tests/model)

  struct Vote {
    std::optional<LeaseReply> last;  // newest by `sent`
    TimePoint until{};               // end of the lease in term_
    bool is_granted = false;         // in term_
  };

  void keep(Vote& vote, const LeaseReply& reply, TimePoint now);

  [[nodiscard]] std::size_t quorum() const {
    return (settings_.witnesses + settings_.liars) / 2 + 1;
  }

  [[nodiscard]] bool may_stand(TimePoint now) const;
  [[nodiscard]] bool other_agrees(TimePoint now) const;
  [[nodiscard]] bool is_complete(const Vote& vote) const;
  [[nodiscard]] bool can_vouch(const Vote& vote) const;
  [[nodiscard]] bool is_fresh(const Vote& vote, TimePoint now) const;
  [[nodiscard]] bool is_valid(const Vote& vote, TimePoint now) const;
  [[nodiscard]] bool has_noted(const Vote& vote) const;
  template <class Counts>
  [[nodiscard]] bool is_quorum(Counts counts) const;
  template <class Counts>
  [[nodiscard]] bool can_lead_by(Counts counts) const;
  [[nodiscard]] bool is_elected(TimePoint now) const;
  [[nodiscard]] TimePoint leases_end() const;
  [[nodiscard]] std::uint64_t stored_by_all() const;
  [[nodiscard]] std::optional<std::uint64_t> noted() const;
  void learn(const LogMark& mark);
  void change_mark(std::uint32_t heads);
  bool raise_mark();
  LeadershipActions note(TimePoint now);
  LeadershipActions advance(TimePoint now);
  LeadershipActions stand(TimePoint now);
  LeadershipActions stand_down(const char* why);
  LeadershipAction ask(TimePoint now);
  void forget_votes();

  Settings settings_;
  Witness own_;  // this head's vote, for itself and for the other head
  std::optional<Witness> before_candidacy_;
  LeadershipRole role_ = LeadershipRole::Follower;
  LogPosition position_;
  Epoch term_;  // Candidate, Leader: its own; else the greatest known
  bool is_term_stored_ = false;
  TimePoint candidacy_ends_{};
  TimePoint next_{};
  Vote other_;
  std::vector<Vote> votes_;  // of the witnesses
  TimePoint patience_ends_{};
  LogPosition known_;  // greatest position of a mark
  bool has_accepted_loss_ = false;
  LogMark mark_;                           // as the head in charge
  std::uint64_t heads_since_ = 0;          // version with which mark_.heads has changed
  std::optional<std::uint64_t> follower_;  // set if it is current; it has stored the log up to here
  std::uint64_t acknowledged_ = 0;
};

}  // namespace score::gang
