// The election has two rounds. First a head only asks, because a restarted witness or a busy
// network must not make terms grow. If a quorum would agree, it takes a term greater than all known
// ones, stores it, and requests leases in that term. The answers that grant the leases decide again
// whether its log is complete: such a witness accepts no more marks from earlier terms, so a
// majority of them know the newest mark.
#include "gang/leadership/leadership.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace score::gang {
namespace {

// A lying witness must not use up the numbers.
constexpr std::uint64_t kMostTermsAhead = 1U << 20U;

}  // namespace

Leadership::Leadership(const Settings& settings, LogPosition position, StoredTerms terms,
                       TimePoint now)
    : settings_(settings),
      own_({terms.granted, other_head(settings.self), {}}, settings.timing.lease, now),
      position_(position),
      term_(std::max({terms.greatest, terms.granted, position.term})),
      next_(now),
      votes_(settings.witnesses),
      patience_ends_(now + settings.timing.patience) {}

// ---- as a witness
// ---------------------------------------------------------------------------------

LeaseReply Leadership::answer(const LeaseRequest& request, TimePoint now) {
  LeaseRequest checked = request;
  const bool is_new = request.term > own_.memory().term;
  // A head with a shorter log may lack acknowledged changes. A head that does not know of a later
  // term, in which this one has led, believes in its old leases.
  if (is_new && request.position < position_) checked.wants = false;
  if (request.term < position_.term) checked.wants = false;
  // The vote of a leader or candidate is its own until tick() ends its term.
  if (role_ != LeadershipRole::Follower) checked.wants = false;
  learn(request.mark);
  LeaseReply reply = own_.answer(checked, now);
  if (reply.granted) settings_.override_by = Override::None;
  if (reply.granted && role_ == LeadershipRole::Follower) term_ = std::max(term_, request.term);
  reply.position = position_;
  return reply;
}

// ---- votes
// ------------------------------------------------------------------------------------------

void Leadership::keep(Vote& vote, const LeaseReply& reply, TimePoint now) {
  if (reply.term.value() > term_.value() + kMostTermsAhead || reply.sent > now) return;
  if (role_ == LeadershipRole::Follower) term_ = std::max(term_, reply.term);
  learn(reply.mark);
  if (vote.last && reply.sent < vote.last->sent) return;
  vote.last = reply;
  if (role_ == LeadershipRole::Follower || reply.asked != term_ || !reply.granted) return;
  vote.is_granted = true;
  vote.until = reply.sent + settings_.timing.lease - settings_.timing.margin;
}

LeadershipActions Leadership::witness_replied(std::size_t witness, const LeaseReply& reply,
                                              TimePoint now) {
  if (witness >= votes_.size()) return {};
  keep(votes_[witness], reply, now);
  LeadershipActions actions = advance(now);
  return actions.empty() ? note(now) : actions;
}

LeadershipActions Leadership::other_replied(const LeaseReply& reply, TimePoint now) {
  keep(other_, reply, now);
  return advance(now);
}

void Leadership::forget_votes() {
  other_ = {};
  std::ranges::fill(votes_, Vote{});
}

void Leadership::learn(const LogMark& mark) {
  known_ = std::max(known_, mark.position);
}

// Returns true if the last answer is younger than a lease. An answer to a mere question shows what
// held lately.
bool Leadership::is_fresh(const Vote& vote, TimePoint now) const {
  return vote.last && now - vote.last->sent < settings_.timing.lease;
}

bool Leadership::is_valid(const Vote& vote, TimePoint now) const {
  return vote.is_granted && now < vote.until;
}

// Returns true if this head may lead should the witness have the newest mark.
bool Leadership::is_complete(const Vote& vote) const {
  const LogMark& mark = vote.last->mark;
  switch (settings_.override_by) {
    case Override::AcceptsLoss:
      return true;
    case Override::OtherIsLost:
      return position_ >= mark.position;
    case Override::None:
      break;
  }
  return mark.includes(settings_.self) && position_ >= mark.position;
}

// Returns true if the witness may speak for a head. A witness that has forgotten, or never knew,
// which heads have every change may not.
bool Leadership::can_vouch(const Vote& vote) const {
  return settings_.override_by != Override::None || vote.last->mark.term != Epoch();
}

template <class Counts>
bool Leadership::is_quorum(Counts counts) const {
  return static_cast<std::size_t>(std::ranges::count_if(votes_, counts)) >= quorum();
}

// Returns true if a quorum among the witnesses that count permits this head to lead by its newest
// mark. A witness with a newer mark is left out: if a quorum knew that mark, too few would remain.
template <class Counts>
bool Leadership::can_lead_by(Counts counts) const {
  const Vote* newest = nullptr;
  for (const Vote& vote : votes_) {
    if (!counts(vote) || !can_vouch(vote) || !is_complete(vote)) continue;
    if (newest == nullptr || newest->last->mark.is_older_than(vote.last->mark)) newest = &vote;
  }
  return newest != nullptr && is_quorum([&](const Vote& vote) {
           return counts(vote) && can_vouch(vote) &&
                  !newest->last->mark.is_older_than(vote.last->mark);
         });
}

// Returns true if the other head lets this one lead. The disks of both heads may be older copies,
// so the witnesses are heard first, if there are any.
bool Leadership::other_agrees(TimePoint now) const {
  if (!other_.last->is_free) return false;
  if (is_behind() && settings_.override_by != Override::AcceptsLoss) return false;
  const bool is_blind = !is_quorum([&](const Vote& vote) { return is_fresh(vote, now); });
  if (is_blind && now < patience_ends_) return false;
  const LogPosition theirs = other_.last->position;
  return position_ > theirs || (position_ == theirs && settings_.self == 0);
}

// A head with a longer log goes first while it is reachable.
bool Leadership::may_stand(TimePoint now) const {
  const Duration wait = settings_.self * settings_.timing.stagger;
  if (!own_.is_free_for(settings_.self, now)) return false;
  if (own_.memory().holder != settings_.self && now < own_.until() + wait) return false;
  if (is_fresh(other_, now)) return other_agrees(now);
  return can_lead_by([&](const Vote& vote) { return is_fresh(vote, now) && vote.last->is_free; });
}

bool Leadership::is_elected(TimePoint now) const {
  const bool has_all = !is_behind() || settings_.override_by == Override::AcceptsLoss;
  if (has_all && is_valid(other_, now)) return true;
  return can_lead_by([&](const Vote& vote) { return is_valid(vote, now); });
}

// The lease of the other head suffices, or the leases of a quorum of the witnesses.
TimePoint Leadership::leases_end() const {
  TimePoint end = other_.is_granted ? other_.until : TimePoint();
  std::vector<TimePoint> ends;
  ends.reserve(votes_.size());
  for (const Vote& vote : votes_) ends.push_back(vote.is_granted ? vote.until : TimePoint());
  if (ends.size() < quorum()) return end;
  const auto last = ends.begin() + static_cast<std::ptrdiff_t>(quorum()) - 1;
  std::ranges::nth_element(ends, last, std::greater());
  return std::max(end, *last);
}

bool Leadership::is_in_charge(TimePoint now) const {
  return role_ == LeadershipRole::Leader && now < leases_end();
}

// ---- candidacy and leadership
// -------------------------------------------------------------------------

LeadershipAction Leadership::ask(TimePoint now) {
  LeaseRequest request;
  request.head = settings_.self;
  request.term = term_;
  request.wants = role_ != LeadershipRole::Follower;
  request.position = position_;
  request.sent = now;
  if (role_ == LeadershipRole::Leader) {
    raise_mark();
    request.mark = mark_;
  }
  // It grants itself its own lease first, so that the other head does not get it in the meantime.
  if (request.wants) static_cast<void>(own_.answer(request, now));
  return AskWitnesses{request};
}

LeadershipActions Leadership::stand(TimePoint now) {
  Epoch newest = std::max(term_, own_.memory().term);
  if (other_.last) newest = std::max(newest, other_.last->term);
  for (const Vote& vote : votes_) {
    if (vote.last) newest = std::max(newest, vote.last->term);
  }
  role_ = LeadershipRole::Candidate;
  const std::uint64_t next = newest.value() + 1;
  term_ = Epoch(next % kHeads == settings_.self ? next : next + 1);
  is_term_stored_ = false;
  candidacy_ends_ = now + settings_.timing.lease;
  next_ = candidacy_ends_;
  forget_votes();
  return {StoreTerm{term_}};
}

LeadershipActions Leadership::term_stored(Epoch term, TimePoint now) {
  if (role_ != LeadershipRole::Candidate || term != term_ || is_term_stored_) return {};
  if (!own_.is_free_for(settings_.self, now) || own_.memory().term >= term_) {
    return stand_down("the other head was faster");
  }
  is_term_stored_ = true;
  before_candidacy_ = own_;
  candidacy_ends_ = now + settings_.timing.lease;
  next_ = now + settings_.timing.period;
  return {ask(now)};
}

// A candidate that was not elected takes its vote for itself back. It never uses that term again,
// and would otherwise not follow a head that leads in an earlier one.
LeadershipActions Leadership::stand_down(const char* why) {
  const bool was_leader = role_ == LeadershipRole::Leader;
  const Witness::Memory& vote = own_.memory();
  const bool is_own = vote.holder == settings_.self && vote.term == term_;
  if (!was_leader && is_own && before_candidacy_) own_ = *before_candidacy_;
  before_candidacy_.reset();
  role_ = LeadershipRole::Follower;
  follower_.reset();
  forget_votes();
  if (!was_leader) return {};
  return {StandDown{why}};
}

LeadershipActions Leadership::advance(TimePoint now) {
  if (role_ == LeadershipRole::Follower && may_stand(now)) return stand(now);
  if (role_ != LeadershipRole::Candidate || !is_term_stored_ || !is_elected(now)) return {};
  role_ = LeadershipRole::Leader;
  has_accepted_loss_ = settings_.override_by == Override::AcceptsLoss;
  settings_.override_by = Override::None;
  // Until the first transaction of this term is stored, the disk ends where it ended before.
  mark_ = {term_, 1, 1U << settings_.self, position_, {}};
  heads_since_ = mark_.version;
  position_ = {term_, 0};
  acknowledged_ = 0;
  next_ = now + settings_.timing.period;
  return {TakeCharge{term_}, ask(now)};
}

LeadershipActions Leadership::tick(TimePoint now) {
  if (role_ == LeadershipRole::Leader && !is_in_charge(now)) {
    return stand_down("the leases of its witnesses have ended");
  }
  if (role_ == LeadershipRole::Candidate && now >= candidacy_ends_) {
    next_ = now + (settings_.self + 1) * settings_.timing.stagger;
    return stand_down("");
  }
  if (now < next_) return {};
  next_ = now + settings_.timing.period;
  if (role_ == LeadershipRole::Candidate && !is_term_stored_) return {};
  LeadershipActions actions = advance(now);
  if (!actions.empty()) return actions;
  const bool follows = role_ == LeadershipRole::Follower && !own_.is_free_for(settings_.self, now);
  if (follows) next_ = std::min(now + settings_.timing.keep_alive, own_.until());
  return {ask(now)};
}

TimePoint Leadership::next_deadline() const {
  if (role_ != LeadershipRole::Leader) return next_;
  return std::min(next_, leases_end());
}

// ---- acknowledgements
// -----------------------------------------------------------------------------

LeadershipActions Leadership::committed(std::uint64_t sequence, TimePoint now) {
  position_.sequence = sequence;
  return note(now);
}

LeadershipActions Leadership::follower_current(std::uint64_t sequence, TimePoint now) {
  if (role_ != LeadershipRole::Leader || sequence < acknowledged_) return {};
  // The witnesses may have noted more than was acknowledged.
  const LogPosition reached{term_, sequence};
  if (mark_.position.term == term_ && reached < mark_.position) return {};
  const bool was_current = follower_.has_value();
  follower_ = std::max(sequence, follower_.value_or(0));
  if (was_current) return note(now);
  change_mark((1U << kHeads) - 1);
  return {ask(now)};
}

LeadershipActions Leadership::follower_stored(std::uint64_t sequence, TimePoint now) {
  if (follower_) follower_ = std::max(*follower_, sequence);
  return note(now);
}

LeadershipActions Leadership::follower_lost(TimePoint now) {
  if (role_ != LeadershipRole::Leader || !follower_) return {};
  follower_.reset();
  change_mark(1U << settings_.self);
  return {ask(now)};
}

void Leadership::change_mark(std::uint32_t heads) {
  ++mark_.version;
  mark_.heads = heads;
  heads_since_ = mark_.version;
}

// Returns the last transaction of this term that every head of the mark has stored.
std::uint64_t Leadership::stored_by_all() const {
  return follower_ ? std::min(*follower_, position_.sequence) : position_.sequence;
}

// Puts the newest position into the mark. Returns true if the mark has changed.
bool Leadership::raise_mark() {
  const LogPosition stored{term_, stored_by_all()};
  if (stored.sequence == 0 || stored <= mark_.position) return false;
  ++mark_.version;
  mark_.position = stored;
  return true;
}

// Returns true if the last answer of the witness has a mark of this term with these heads.
bool Leadership::has_noted(const Vote& vote) const {
  return vote.is_granted && vote.last && vote.last->granted && vote.last->mark.term == term_ &&
         vote.last->mark.version >= heads_since_;
}

// Sends the newest position to the witnesses. A quorum must have noted the last one, so the number
// of requests is limited by the round trips; lost ones are repeated by tick().
LeadershipActions Leadership::note(TimePoint now) {
  if (role_ != LeadershipRole::Leader || !settings_.notes_changes) return {};
  const bool is_idle = is_quorum([this](const Vote& vote) {
    return has_noted(vote) && vote.last->mark.version == mark_.version;
  });
  if (!is_idle || !raise_mark()) return {};
  AskWitnesses asks = std::get<AskWitnesses>(ask(now));
  asks.is_note = true;
  return {asks};
}

bool Leadership::has_leases(TimePoint now) const {
  return is_quorum([&](const Vote& vote) { return is_valid(vote, now); });
}

bool Leadership::has_witnesses(TimePoint now) const {
  return is_quorum([&](const Vote& vote) {
    return is_valid(vote, now) && vote.last && vote.last->mark.term == term_;
  });
}

// Returns the last transaction of this term whose position a quorum of the witnesses has noted.
std::optional<std::uint64_t> Leadership::noted() const {
  std::vector<std::uint64_t> sequences;
  for (const Vote& vote : votes_) {
    if (!has_noted(vote)) continue;
    const LogPosition position = vote.last->mark.position;
    sequences.push_back(position.term == term_ ? position.sequence : 0);
  }
  if (sequences.size() < quorum()) return std::nullopt;
  const auto last = sequences.begin() + static_cast<std::ptrdiff_t>(quorum()) - 1;
  std::ranges::nth_element(sequences, last, std::greater());
  return *last;
}

std::uint64_t Leadership::acknowledged(TimePoint now) {
  if (!is_in_charge(now)) return acknowledged_;
  const auto noted_up_to = noted();
  std::uint64_t reached = acknowledged_;
  if (follower_ && (!settings_.notes_changes || !has_witnesses(now))) {
    reached = stored_by_all();
  } else if (noted_up_to) {
    reached = settings_.notes_changes ? std::min(*noted_up_to, stored_by_all()) : stored_by_all();
  }
  acknowledged_ = std::max(acknowledged_, reached);
  return acknowledged_;
}

std::string Leadership::why_not(TimePoint now) const {
  if (role_ == LeadershipRole::Leader) return {};
  if (role_ == LeadershipRole::Candidate) return "asks the witnesses for their leases";
  if (!own_.is_free_for(settings_.self, now)) return "follows the other head";
  if (is_behind()) {
    return fmt::format(
        "it lacks changes: its state ends at change {} of term {}, the cluster's at change {} of "
        "term {}; start the other head, or this one with --recover to lose them",
        position_.sequence, position_.term, known_.sequence, known_.term);
  }
  if (is_fresh(other_, now)) return "the other head has the longer log, or follows none yet";
  std::size_t heard = 0;
  std::size_t free = 0;
  for (const Vote& vote : votes_) {
    if (!is_fresh(vote, now)) continue;
    ++heard;
    if (vote.last->is_free) ++free;
  }
  if (heard < quorum()) return "hears neither the other head nor a majority of the witnesses";
  if (free < quorum()) return "the witnesses follow the other head";
  return "the witnesses do not know that its state is complete";
}

}  // namespace score::gang
