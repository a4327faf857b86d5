#include "tests/model/heads_steps.hpp"

#include <algorithm>

namespace score::gang::model {

LeaseTiming timing() {
  LeaseTiming timing;
  timing.lease = 3 * kTick;
  timing.margin = kTick;
  timing.period = kTick;
  timing.keep_alive = kTick;
  timing.stagger = kTick;
  timing.patience = 4 * kTick;
  return timing;
}

// ---- the world ----------------------------------------------------------------------------------

State Steps::initial() const {
  State state;
  state.left = world_.faults;
  for (Head& head : state.heads) head.disk = {{Epoch(1), Epoch(0)}, {Epoch(1), 0}, 0};
  for (std::size_t w = 0; w < world_.witnesses; ++w) {
    state.witnesses.emplace_back(Witness::Memory(), timing().lease, state.now - 10 * kTick);
  }
  for (std::size_t i = 0; i < kHeads; ++i) start(state, i);
  if (!world_.is_parted) return state;
  for (int i = 0; i < kTicksToLead && !is_settled(state); ++i) work(state);
  state.cuts = link(0, 1) | link(1, 0);
  return state;
}

void Steps::start(State& state, std::size_t i) const {
  Head& head = state.heads[i];
  Leadership::Settings settings;
  settings.self = static_cast<HeadIndex>(i);
  settings.witnesses = world_.witnesses;
  settings.liars = world_.liars;
  settings.timing = timing();
  // An older copy of a disk is recognized by the witnesses, so the search gives them time to
  // answer.
  if (world_.faults.old_disks > 0) settings.timing.patience = std::chrono::hours(10);
  head.core.emplace(settings, head.disk.position, head.disk.terms, local(state, i));
  head.waiting.clear();
  head.is_opened = false;
  head.ships = false;
  head.follows = Epoch();
}

void Steps::perform(State& state, std::size_t i, LeadershipActions actions) const {
  for (const LeadershipAction& action : actions) {
    Head& head = state.heads[i];
    if (!head.core) return;
    if (const auto* stores = std::get_if<StoreTerm>(&action)) {
      head.disk.terms.greatest = stores->term;
      perform(state, i, head.core->term_stored(stores->term, local(state, i)));
    } else if (const auto* takes = std::get_if<TakeCharge>(&action)) {
      if (takes->term <= state.elected) state.has_elected_earlier = true;
      state.elected = std::max(state.elected, takes->term);
      if (!head.core->has_leases(local(state, i))) state.is_blind = true;
    } else if (const auto* asks = std::get_if<AskWitnesses>(&action)) {
      ask(state, i, *asks);
    } else {  // its process starts again
      for (Head& one : state.heads) one.ships = false;
      start(state, i);
      return;
    }
  }
}

void Steps::ask(State& state, std::size_t i, const AskWitnesses& asks) const {
  for (std::size_t w = 0; w < state.witnesses.size(); ++w) {
    ask_witness(state, i, w, asks.request);
  }
  const std::size_t to = 1 - i;
  if (asks.is_note || !is_up(state, to) || is_cut(state, i, to)) return;
  const LeaseReply reply = state.heads[to].core->answer(asks.request, local(state, to));
  StoredTerms& stored = state.heads[to].disk.terms;
  if (reply.granted) {
    if (asks.request.mark.term == asks.request.term) state.heads[to].follows = asks.request.term;
    stored.granted = std::max(stored.granted, asks.request.term);
    stored.greatest = std::max(stored.greatest, asks.request.term);
  }
  if (is_cut(state, to, i) || !is_up(state, i)) return;
  perform(state, i, state.heads[i].core->other_replied(reply, local(state, i)));
}

void Steps::ask_witness(State& state, std::size_t i, std::size_t w,
                        const LeaseRequest& request) const {
  if (is_cut(state, i, kHeads + w)) return;
  Late late{static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(w), false, request, {}};
  if (w == 0 && std::exchange(state.holds_request, false)) {
    state.late = late;
    return;
  }
  late.reply = answer(state, w, request);
  if (is_cut(state, kHeads + w, i)) return;
  if (w == 0 && std::exchange(state.holds_reply, false)) {
    late.is_reply = true;
    state.late = late;
    return;
  }
  take(state, i, w, late.reply);
}

LeaseReply Steps::answer(State& state, std::size_t w, const LeaseRequest& request) const {
  const bool is_liar = world_.has_liar && w + 1 == state.witnesses.size();
  if (!is_liar) return state.witnesses[w].answer(request, state.now);
  if (request.mark.term != Epoch() &&
      std::ranges::find(state.seen, request.mark) == state.seen.end())
    state.seen.push_back(request.mark);
  if (!state.lie.is_on) return state.witnesses[w].answer(request, state.now);
  LeaseReply reply;
  reply.sent = request.sent;
  reply.asked = request.term;
  reply.granted = state.lie.grants && request.wants;
  reply.is_free = state.lie.grants;
  reply.term = request.term;
  reply.mark = state.lie.mark;
  return reply;
}

void Steps::take(State& state, std::size_t i, std::size_t w, const LeaseReply& reply) const {
  if (!is_up(state, i)) return;
  perform(state, i, state.heads[i].core->witness_replied(w, reply, local(state, i)));
}

void Steps::settle(State& state) const {
  for (std::size_t i = 0; i < kHeads; ++i) {
    Head& head = state.heads[i];
    if (!is_up(state, i)) continue;
    const std::uint64_t reached = head.core->acknowledged(local(state, i));
    while (!head.waiting.empty() && head.waiting.front().first <= reached) {
      const std::uint32_t bit = 1U << head.waiting.front().second;
      state.acknowledged |= bit;
      if (!head.core->has_witnesses(local(state, i))) state.unwitnessed |= bit;
      head.waiting.erase(head.waiting.begin());
    }
  }
}

// ---- steps --------------------------------------------------------------------------------------

void Steps::tick(State& state, std::size_t first) const {
  state.now += kTick;
  for (const std::size_t i : {first, 1 - first}) {
    Head& head = state.heads[i];
    if (head.is_stopped) head.behind += kTick;
    if (is_up(state, i)) perform(state, i, head.core->tick(local(state, i)));
  }
}

void Steps::submit(State& state, std::size_t i) const {
  Head& head = state.heads[i];
  const std::uint8_t entry = state.next_entry++;
  head.disk.log |= 1U << entry;
  const std::uint64_t sequence = ++head.disk.position.sequence;
  head.waiting.emplace_back(sequence, entry);
  perform(state, i, head.core->committed(sequence, local(state, i)));
}

// The first transaction of the term is stored.
void Steps::open(State& state, std::size_t i) const {
  Head& head = state.heads[i];
  head.is_opened = true;
  head.disk.position = {head.core->term(), 0};
}

bool Steps::can_replicate(const State& state, std::size_t i) const {
  const Head& head = state.heads[i];
  if (!is_up(state, i) || !is_up(state, 1 - i) || !head.is_opened) return false;
  if (is_cut(state, i, 1 - i) || is_cut(state, 1 - i, i)) return false;
  if (head.core->role() != LeadershipRole::Leader) return false;
  const Head& other = state.heads[1 - i];
  return other.core->role() == LeadershipRole::Follower && other.follows == head.core->term();
}

void Steps::replicate(State& state, std::size_t i, bool is_reported) const {
  Head& head = state.heads[i];
  Head& other = state.heads[1 - i];
  other.disk.log = head.disk.log;
  other.disk.position = head.disk.position;
  other.core->stored(head.disk.position);
  if (!is_reported) return;
  head.ships = true;
  const std::uint64_t sequence = head.disk.position.sequence;
  const TimePoint now = local(state, i);
  const bool is_current = head.core->has_current_follower();
  perform(state, i,
          is_current ? head.core->follower_stored(sequence, now)
                     : head.core->follower_current(sequence, now));
}

void Steps::lose_follower(State& state, std::size_t i) const {
  state.heads[i].ships = false;
  perform(state, i, state.heads[i].core->follower_lost(local(state, i)));
}

void Steps::crash(State& state, std::size_t i) const {
  Head& head = state.heads[i];
  head.core.reset();
  head.is_stopped = false;
  head.waiting.clear();
  head.is_opened = false;
  head.ships = false;
  if (Head& other = state.heads[1 - i]; other.core) other.core->other_gone();
}

void Steps::let_late_arrive(State& state) const {
  Late late = *std::exchange(state.late, std::nullopt);
  if (!late.is_reply) late.reply = answer(state, late.witness, late.request);
  take(state, late.head, late.witness, late.reply);
}

// ---- an end of all faults -----------------------------------------------------------------------

void Steps::heal(State& state) const {
  state.cuts = 0;
  state.late.reset();
  state.holds_request = state.holds_reply = false;
  for (std::size_t i = 0; i < kHeads; ++i) {
    state.heads[i].is_stopped = false;
    if (!state.heads[i].core) start(state, i);
  }
}

void Steps::work(State& state) const {
  tick(state, 0);
  for (std::size_t i = 0; i < kHeads; ++i) {
    const Head& head = state.heads[i];
    if (!is_up(state, i) || head.core->role() != LeadershipRole::Leader) continue;
    if (!head.is_opened) open(state, i);
    if (can_replicate(state, i)) {
      replicate(state, i, true);
    } else if (head.ships) {
      lose_follower(state, i);
    }
  }
  settle(state);
}

bool Steps::is_settled(const State& state) const {
  for (std::size_t i = 0; i < kHeads; ++i) {
    const Head& head = state.heads[i];
    if (!head.core || !head.core->is_in_charge(local(state, i))) continue;
    return !state.heads[1 - i].core || head.core->has_current_follower();
  }
  return false;
}

}  // namespace score::gang::model
