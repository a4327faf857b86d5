// The election has two rounds. First a head only asks, because a restarted witness or a busy
// network must not make terms grow. If a quorum would agree, it takes a term greater than all known
// ones, stores it, and requests leases in that term. The answers that grant the leases decide again
// whether its log is complete: such a witness accepts no more marks from earlier terms, so a
// majority of them know the newest mark.
#include "gang/leadership/leadership.hpp"

#include <algorithm>
#include <functional>

namespace score::gang {
namespace {

// A lying witness must not use up the numbers.
constexpr std::uint64_t kMostTermsAhead = 1U << 20U;

}  // namespace

Leadership::Leadership(const Settings& settings, LogPosition position, Epoch term, TimePoint now)
    : settings_(settings),
      own_({term, std::nullopt, {}}, settings.timing.lease, now),
      position_(position),
      term_(std::max(term, position.term)),
      next_(now),
      nodes_(settings.nodes) {}

// ---- as a witness
// ---------------------------------------------------------------------------------

LeaseReply Leadership::answer(const LeaseRequest& request, TimePoint now) {
  LeaseRequest checked = request;
  const bool is_new = request.term > own_.memory().term;
  // A head with a shorter log may lack acknowledged changes.
  if (is_new && request.position < position_) checked.wants = false;
  LeaseReply reply = own_.answer(checked, now);
  if (reply.granted) settings_.is_forced = false;
  if (reply.granted && role_ == LeadershipRole::Follower) term_ = std::max(term_, request.term);
  reply.position = position_;
  return reply;
}

// ---- votes
// ------------------------------------------------------------------------------------------

void Leadership::keep(Vote& vote, const LeaseReply& reply) {
  if (reply.term.value() > term_.value() + kMostTermsAhead) return;
  if (role_ == LeadershipRole::Follower) term_ = std::max(term_, reply.term);
  if (vote.last && reply.sent < vote.last->sent) return;
  vote.last = reply;
  if (role_ == LeadershipRole::Follower || reply.asked != term_ || !reply.granted) return;
  vote.is_granted = true;
  vote.until = reply.sent + settings_.timing.lease - settings_.timing.margin;
}

LeadershipActions Leadership::node_replied(std::size_t node, const LeaseReply& reply,
                                           TimePoint now) {
  if (node >= nodes_.size()) return {};
  keep(nodes_[node], reply);
  return advance(now);
}

LeadershipActions Leadership::other_replied(const LeaseReply& reply, TimePoint now) {
  keep(other_, reply);
  return advance(now);
}

void Leadership::forget_votes() {
  other_ = {};
  std::ranges::fill(nodes_, Vote{});
}

// Returns true if the last answer is younger than a lease. An answer to a mere question shows what
// held lately.
bool Leadership::is_fresh(const Vote& vote, TimePoint now) const {
  return vote.last && now - vote.last->sent < settings_.timing.lease;
}

bool Leadership::is_complete(const LogMark& newest) const {
  return settings_.is_forced || newest.includes(settings_.self);
}

// Returns true if the node may speak for a head. A node that has forgotten, or never knew, which
// heads have every change may not.
bool Leadership::can_vouch(const Vote& vote) const {
  return settings_.is_forced || vote.last->mark.term != Epoch();
}

bool Leadership::other_agrees(TimePoint now) const {
  if (!is_fresh(other_, now) || !other_.last->is_free) return false;
  const LogPosition theirs = other_.last->position;
  return position_ > theirs || (position_ == theirs && settings_.self == 0);
}

bool Leadership::nodes_agree(TimePoint now) const {
  LogMark newest;
  std::size_t agree = 0;
  for (const Vote& vote : nodes_) {
    if (!is_fresh(vote, now) || !vote.last->is_free || !can_vouch(vote)) continue;
    ++agree;
    if (newest.is_older_than(vote.last->mark)) newest = vote.last->mark;
  }
  return agree >= majority() && is_complete(newest);
}

// A head with a longer log goes first while it is reachable.
bool Leadership::may_stand(TimePoint now) const {
  const Duration wait = settings_.self * settings_.timing.stagger;
  if (!own_.is_free_for(settings_.self, now)) return false;
  if (own_.memory().holder != settings_.self && now < own_.until() + wait) return false;
  const bool has_other = is_fresh(other_, now);
  if (has_other) return other_agrees(now);
  return nodes_agree(now);
}

bool Leadership::is_elected(TimePoint now) const {
  if (other_.is_granted && now < other_.until) return true;
  LogMark newest;
  std::size_t granted = 0;
  for (const Vote& vote : nodes_) {
    if (!vote.is_granted || now >= vote.until || !can_vouch(vote)) continue;
    ++granted;
    if (newest.is_older_than(vote.last->mark)) newest = vote.last->mark;
  }
  return granted >= majority() && is_complete(newest);
}

// The lease of the other head suffices, or the leases of a majority of the nodes.
TimePoint Leadership::leases_end() const {
  TimePoint end = other_.is_granted ? other_.until : TimePoint();
  std::vector<TimePoint> ends;
  ends.reserve(nodes_.size());
  for (const Vote& vote : nodes_) ends.push_back(vote.is_granted ? vote.until : TimePoint());
  if (ends.size() < majority()) return end;
  const auto last = ends.begin() + static_cast<std::ptrdiff_t>(majority()) - 1;
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
  if (role_ == LeadershipRole::Leader) request.mark = mark_;
  // It grants itself its own lease first, so that the other head does not get it in the meantime.
  if (request.wants) static_cast<void>(own_.answer(request, now));
  return AskWitnesses{request};
}

LeadershipActions Leadership::stand(TimePoint now) {
  Epoch newest = std::max(term_, own_.memory().term);
  if (other_.last) newest = std::max(newest, other_.last->term);
  for (const Vote& vote : nodes_) {
    if (vote.last) newest = std::max(newest, vote.last->term);
  }
  role_ = LeadershipRole::Candidate;
  term_ = Epoch(newest.value() + 1);
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
  candidacy_ends_ = now + settings_.timing.lease;
  next_ = now + settings_.timing.period;
  return {ask(now)};
}

LeadershipActions Leadership::stand_down(const char* why) {
  const bool was_leader = role_ == LeadershipRole::Leader;
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
  settings_.is_forced = false;
  mark_ = {term_, 1, 1U << settings_.self};
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

LeadershipActions Leadership::follower_current(std::uint64_t sequence, TimePoint now) {
  if (role_ != LeadershipRole::Leader || sequence < acknowledged_) return {};
  const bool was_current = follower_.has_value();
  follower_ = std::max(sequence, follower_.value_or(0));
  if (was_current) return {};
  mark_ = {term_, mark_.version + 1, (1U << kHeads) - 1};
  return {ask(now)};
}

void Leadership::follower_stored(std::uint64_t sequence) {
  if (follower_) follower_ = std::max(*follower_, sequence);
}

LeadershipActions Leadership::follower_lost(TimePoint now) {
  if (role_ != LeadershipRole::Leader || !follower_) return {};
  follower_.reset();
  mark_ = {term_, mark_.version + 1, 1U << settings_.self};
  return {ask(now)};
}

bool Leadership::is_mark_noted() const {
  const auto noted = [this](const Vote& vote) {
    return vote.is_granted && vote.last && vote.last->granted && vote.last->mark == mark_;
  };
  return static_cast<std::size_t>(std::ranges::count_if(nodes_, noted)) >= majority();
}

std::uint64_t Leadership::acknowledged(TimePoint now) {
  if (!is_in_charge(now)) return acknowledged_;
  std::uint64_t reached = acknowledged_;
  if (follower_) {
    reached = std::min(*follower_, position_.sequence);
  } else if (is_mark_noted()) {
    reached = position_.sequence;
  }
  acknowledged_ = std::max(acknowledged_, reached);
  return acknowledged_;
}

std::string Leadership::why_not(TimePoint now) const {
  if (role_ == LeadershipRole::Leader) return {};
  if (role_ == LeadershipRole::Candidate) return "asks the nodes for their leases";
  if (!own_.is_free_for(settings_.self, now)) return "follows the other head";
  if (is_fresh(other_, now)) return "the other head has the longer log, or follows none yet";
  std::size_t heard = 0;
  std::size_t free = 0;
  for (const Vote& vote : nodes_) {
    if (!is_fresh(vote, now)) continue;
    ++heard;
    if (vote.last->is_free) ++free;
  }
  if (heard < majority()) return "hears neither the other head nor a majority of the nodes";
  if (free < majority()) return "the nodes follow the other head";
  return "the nodes do not know that its state is complete";
}

}  // namespace score::gang
