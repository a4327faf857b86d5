#include "tests/sim/heads_world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace score::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kFirstNode = 2;  // index in cuts_
constexpr Duration kStep = 20ms;       // interval of timers, clients and faults
constexpr std::size_t kEnoughForALiar = 5;
constexpr std::size_t kEnoughForStops = 3;
constexpr std::size_t kMostShown = 50;
// A head whose clock has stopped may believe in its leases for as long.
constexpr Duration kBelief = 10s;

}  // namespace

HeadsWorld::HeadsWorld(const HeadsOptions& options)
    : options_(options), chance_(options.seed), nodes_(options.nodes), faults_(options.has_faults) {
  for (Head& head : heads_) head.rate = 0.99 + 0.0002 * static_cast<double>(chance_.below(100));
  for (Node& node : nodes_) node.rate = 0.99 + 0.0002 * static_cast<double>(chance_.below(100));
  for (std::size_t i = 0; i < nodes_.size(); ++i) start_node(i, true);
  for (std::size_t i = 0; i < heads_.size(); ++i) start(i);
}

TimePoint HeadsWorld::local(const Head& head) const {
  const TimePoint now = local(head.rate) - head.behind;
  if (!head.stopped_at || !head.has_stopped_clock) return now;
  return now - (events_.now() - *head.stopped_at);
}

TimePoint HeadsWorld::local(double rate) const {
  return TimePoint(Duration(static_cast<std::int64_t>(
      static_cast<double>(events_.now().time_since_epoch().count()) * rate)));
}

// ---- processes ----------------------------------------------------------------------------------

void HeadsWorld::start(std::size_t i, gang::Override override_by) {
  Head& head = heads_[i];
  head.life = ++head.lives;
  gang::Leadership::Settings settings;
  settings.self = static_cast<gang::HeadIndex>(i);
  settings.witnesses = nodes_.size();
  settings.override_by = override_by;
  settings.liars = nodes_.size() >= kEnoughForALiar ? 1 : 0;
  head.leadership = std::make_unique<gang::Leadership>(settings, head.disk.position,
                                                       head.disk.terms, local(head));
  head.follows = Epoch();
  head.waiting.clear();
  head.opened = false;
  head.ships_from.reset();
}

void HeadsWorld::start_node(std::size_t i, bool forgets) {
  Node& node = nodes_[i];
  if (forgets) node.memory = {};
  ++node.life;
  node.witness =
      std::make_unique<gang::Witness>(node.memory, gang::LeaseTiming{}.lease, local(node.rate));
}

void HeadsWorld::crash(std::size_t i) {
  Head& head = heads_[i];
  head.life = 0;
  head.stopped_at.reset();
  head.leadership.reset();
  ++seen_.crashes;
  if (Head& other = heads_[1 - i]; other.life != 0) other.leadership->other_gone();
  end_stream();
}

void HeadsWorld::restart(std::size_t i) {
  if (heads_[i].life == 0) start(i);
}

bool HeadsWorld::recover() {
  const std::size_t i = heads_[0].disk.position < heads_[1].disk.position ? 1 : 0;
  if (heads_[i].life == 0 || !heads_[i].leadership->is_behind()) return false;
  crash(i);
  start(i, gang::Override::AcceptsLoss);
  return true;
}

// ---- messages -----------------------------------------------------------------------------------

template <typename What>
void HeadsWorld::send(std::size_t from, std::size_t to, What what) {
  if (is_cut(from, to)) return;
  if (faults_ && chance_.one_in(50)) return;
  const bool is_late = faults_ && chance_.one_in(30);
  const Duration delay = is_late ? chance_.between(50ms, 3s) : chance_.between(100us, 5ms);
  events_.after(delay, [this, from, to, what = std::move(what)] {
    if (!is_cut(from, to)) what();
  });
}

// The last of enough witnesses lies: it grants its lease to everybody, and shows old marks.
gang::LeaseReply HeadsWorld::answer(std::size_t n, const gang::LeaseRequest& request) {
  Node& node = nodes_[n];
  const bool is_liar = faults_ && n + 1 == nodes_.size() && nodes_.size() >= kEnoughForALiar;
  if (is_liar && request.mark.term != Epoch() && shown_.size() < kMostShown) {
    shown_.push_back(request.mark);
  }
  if (is_liar && chance_.one_in(3)) {
    ++seen_.lies;
    gang::LeaseReply reply;
    reply.granted = request.wants && !chance_.one_in(4);
    reply.is_free = true;
    reply.term = Epoch(request.term.value() + chance_.below(3));
    reply.asked = request.term;
    reply.sent = request.sent;
    if (!shown_.empty()) reply.mark = shown_[chance_.below(shown_.size())];
    return reply;
  }
  const auto reply = node.witness->answer(request, local(node.rate));
  node.memory = node.witness->memory();
  return reply;
}

void HeadsWorld::ask(std::size_t from, const gang::AskWitnesses& asks) {
  const std::uint64_t life = heads_[from].life;
  const gang::LeaseRequest& request = asks.request;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    send(from, kFirstNode + n, [this, from, n, life, request] {
      if (!nodes_[n].witness) return;
      const auto reply = answer(n, request);
      send(kFirstNode + n, from, [this, from, n, life, reply] {
        Head& head = heads_[from];
        if (head.life != life || head.stopped_at) return;
        perform(from, head.leadership->witness_replied(n, reply, local(head)));
      });
    });
  }
  if (asks.is_note) return;
  const std::size_t to = 1 - from;
  send(from, to, [this, from, to, life, request] {
    Head& other = heads_[to];
    if (!is_up(other)) return;
    const auto reply = other.leadership->answer(request, local(other));
    if (reply.granted) {
      gang::StoredTerms& stored = other.disk.terms;
      stored.granted = std::max(stored.granted, request.term);
      stored.greatest = std::max(stored.greatest, request.term);
      if (request.mark.term == request.term) other.follows = request.term;
    }
    send(to, from, [this, from, life, reply] {
      Head& head = heads_[from];
      if (head.life != life || head.stopped_at) return;
      perform(from, head.leadership->other_replied(reply, local(head)));
    });
  });
}

void HeadsWorld::perform(std::size_t i, gang::LeadershipActions actions) {
  for (const auto& action : actions) {
    Head& head = heads_[i];
    if (const auto* asks = std::get_if<gang::AskWitnesses>(&action)) ask(i, *asks);
    if (const auto* stores = std::get_if<gang::StoreTerm>(&action)) {
      events_.after(chance_.between(1ms, 20ms), [this, i, life = head.life, term = stores->term] {
        Head& self = heads_[i];
        if (self.life != life) return;
        self.disk.terms.greatest = term;
        perform(i, self.leadership->term_stored(term, local(self)));
      });
    }
    if (const auto* takes = std::get_if<gang::TakeCharge>(&action)) take_charge(i, takes->term);
    if (std::holds_alternative<gang::StandDown>(action)) {  // its process starts again
      ++seen_.stood_down;
      end_stream();
      start(i);
      return;
    }
    check();
  }
}

// ---- the log ------------------------------------------------------------------------------------

void HeadsWorld::take_charge(std::size_t i, Epoch term) {
  Head& head = heads_[i];
  ++seen_.taken_charge;
  end_stream();
  check_complete(i, head.leadership->has_leases(local(head)));
  events_.after(chance_.between(1ms, 300ms), [this, i, life = head.life, term] {
    Head& self = heads_[i];
    if (self.life != life) return;
    self.disk.position = {term, 0};
    self.opened = true;
  });
}

// Without witnesses an older copy of a disk is not recognized, so what it lacks may be lost.
void HeadsWorld::check_complete(std::size_t i, bool is_witnessed) {
  const Log& log = heads_[i].disk.log;
  std::vector<std::uint64_t> lost;
  std::ranges::copy_if(acknowledged_, std::back_inserter(lost), [&](std::uint64_t entry) {
    return std::ranges::find(log, entry) == log.end();
  });
  for (const std::uint64_t entry : lost) {
    if (seen_.old_disks == 0 || (is_witnessed && !unwitnessed_.contains(entry))) {
      throw std::runtime_error(fmt::format("head {} takes charge without entry {}", i, entry));
    }
    acknowledged_.erase(entry);
    ++seen_.unwitnessed;
  }
}

void HeadsWorld::submit() {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    Head& head = heads_[i];
    if (!is_up(head) || !head.opened || !head.leadership->is_in_charge(local(head))) continue;
    const std::uint64_t entry = next_entry_++;
    ++seen_.submitted;
    // The entry goes to the head's own disk first. Transactions are in order because there is one
    // at a time.
    const Duration write = chance_.between(200us, 10ms);
    events_.after(write, [this, i, life = head.life, entry] {
      Head& self = heads_[i];
      if (self.life != life) return;
      self.disk.log.push_back(entry);
      const std::uint64_t sequence = ++self.disk.position.sequence;
      self.waiting.emplace_back(sequence, entry);
      perform(i, self.leadership->committed(sequence, local(self)));
      if (self.life != life) return;
      if (self.ships_from) ship(i, self.disk, false);
      settle(i);
    });
  }
}

// Answers the clients whose entries may be acknowledged.
void HeadsWorld::settle(std::size_t i) {
  Head& head = heads_[i];
  const std::uint64_t reached = head.leadership->acknowledged(local(head));
  const Head& other = heads_[1 - i];
  const bool is_replaced = other.life != 0 &&
                           other.leadership->role() == gang::LeadershipRole::Leader &&
                           other.leadership->term() > head.leadership->term();
  while (!head.waiting.empty() && head.waiting.front().first <= reached) {
    const std::uint64_t entry = head.waiting.front().second;
    acknowledged_.insert(entry);
    if (!head.leadership->has_witnesses(local(head))) unwitnessed_.insert(entry);
    if (is_replaced && std::ranges::find(other.disk.log, entry) == other.disk.log.end()) {
      throw std::runtime_error(fmt::format("replaced head {} acknowledges entry {}", i, entry));
    }
    head.waiting.erase(head.waiting.begin());
    ++seen_.acknowledged;
    if (!head.leadership->has_current_follower()) ++seen_.alone;
  }
}

void HeadsWorld::end_stream() {
  ++stream_;
  for (Head& head : heads_) {
    if (head.ships_from.has_value() && head.leadership) {
      head.ships_from.reset();
      const auto i = static_cast<std::size_t>(&head - heads_.data());
      perform(i, head.leadership->follower_lost(local(head)));
    }
    head.ships_from.reset();
  }
}

// The follower connects to the active head unless they are partitioned.
void HeadsWorld::follow() {
  if (!has_stream()) return;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    Head& head = heads_[i];
    const Head& other = heads_[1 - i];
    if (!is_up(head) || !is_up(other) || !head.opened || head.ships_from) continue;
    if (other.leadership->role() != gang::LeadershipRole::Follower) continue;
    if (other.follows != head.leadership->term()) continue;
    head.ships_from = head.disk.position.sequence;
    ++seen_.snapshots;
    ship(i, head.disk, true);
  }
}

void HeadsWorld::ship(std::size_t from, Disk state, bool is_snapshot) {
  const std::size_t to = 1 - from;
  const Duration longest = is_snapshot ? Duration(1s) : Duration(10ms);
  last_ship_ = std::max(last_ship_, events_.now()) + chance_.between(100us, longest);
  events_.at(last_ship_, [this, to, state = std::move(state), stream = stream_] {
    if (stream == stream_ && has_stream()) store(to, state, stream);
  });
}

void HeadsWorld::store(std::size_t at, Disk state, std::uint64_t stream) {
  Head& follower = heads_[at];
  // A head that is a candidate in an election accepts nothing more.
  if (!is_up(follower) || follower.leadership->role() != gang::LeadershipRole::Follower) {
    return end_stream();
  }
  follower.disk.log = state.log;
  follower.disk.position = state.position;
  follower.leadership->stored(state.position);
  events_.after(chance_.between(100us, 10ms), [this, at, stream, state] {
    Head& leader = heads_[1 - at];
    if (stream != stream_ || !has_stream() || !is_up(leader)) return;
    if (leader.leadership->term() != state.position.term) return;
    const TimePoint now_there = local(leader);
    if (!leader.leadership->has_current_follower()) {
      perform(1 - at, leader.leadership->follower_current(state.position.sequence, now_there));
    } else {
      perform(1 - at, leader.leadership->follower_stored(state.position.sequence, now_there));
    }
    if (leader.life != 0 && leader.leadership) settle(1 - at);
  });
}

// ---- time and faults ----------------------------------------------------------------------------

void HeadsWorld::wake(std::size_t i) {
  Head& head = heads_[i];
  if (!is_up(head)) return;
  perform(i, head.leadership->tick(local(head)));
  if (heads_[i].leadership) settle(i);
}

void HeadsWorld::cut(std::size_t from, std::size_t to) {
  cuts_.insert({from, to});
  if (from < kFirstNode && to < kFirstNode) end_stream();
}

void HeadsWorld::stop(std::size_t i) {
  heads_[i].stopped_at = events_.now();
  // A single witness that forgets grants its lease to a head that missed its end.
  heads_[i].has_stopped_clock = nodes_.size() >= kEnoughForStops && chance_.one_in(2);
  ++seen_.stops;
}

void HeadsWorld::go_on(std::size_t i) {
  Head& head = heads_[i];
  if (!head.stopped_at) return;
  if (head.has_stopped_clock) head.behind += events_.now() - *head.stopped_at;
  head.continued = events_.now();
  head.stopped_at.reset();
}

bool HeadsWorld::has_everything(const Head& head) const {
  return std::ranges::all_of(acknowledged_, [&](std::uint64_t entry) {
    return std::ranges::find(head.disk.log, entry) != head.disk.log.end();
  });
}

void HeadsWorld::chance_of_heads() {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    Head& head = heads_[i];
    if (chance_.one_in(1'000)) head.copy = head.disk;
    if (chance_.one_in(900)) {
      if (head.life != 0) crash(i);
    } else if (head.stopped_at) {
      if (chance_.one_in(100)) go_on(i);
    } else if (head.life != 0 && chance_.one_in(1'500)) {
      stop(i);
    } else if (head.life == 0 && chance_.one_in(100)) {
      // The other disk must have everything, else no head can ever lead.
      if (chance_.one_in(3) && head.copy.position != gang::LogPosition() &&
          has_everything(heads_[1 - i])) {
        head.disk = head.copy;
        ++seen_.old_disks;
      }
      restart(i);
    }
  }
}

void HeadsWorld::chance_of_nodes() {
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (chance_.one_in(2'000)) {
      nodes_[n].witness.reset();
    } else if (!nodes_[n].witness && chance_.one_in(100)) {
      const bool forgets = chance_.one_in(2);
      if (forgets) ++seen_.reboots;
      start_node(n, forgets);
    }
  }
}

void HeadsWorld::chance_of_links() {
  if (chance_.one_in(300)) {  // one link, or one head from some of the nodes
    const std::size_t a = chance_.below(2);
    const bool outwards = chance_.one_in(2);  // in one direction, unless both
    const bool both = chance_.one_in(2);
    ++seen_.partitions;
    const auto cut_some = [&](std::size_t b) {
      if (both || outwards) cut(a, b);
      if (both || !outwards) cut(b, a);
    };
    if (chance_.one_in(2)) cut_some(1 - a);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (chance_.one_in(2)) cut_some(kFirstNode + n);
    }
  }
  if (chance_.one_in(150)) {
    cuts_.clear();
  }
}

void HeadsWorld::chance() {
  chance_of_heads();
  chance_of_nodes();
  chance_of_links();
}

void HeadsWorld::heal() {
  faults_ = false;
  cuts_.clear();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n].witness) start_node(n, false);
  }
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    go_on(i);
    restart(i);
  }
}

void HeadsWorld::check() {
  std::size_t in_charge = 0;
  for (const Head& head : heads_) {
    const bool may_err = head.stopped_at || events_.now() < head.continued + kBelief;
    if (may_err && head.behind + Duration(head.has_stopped_clock ? 1 : 0) > Duration(0)) continue;
    if (head.life != 0 && head.leadership->is_in_charge(local(head))) ++in_charge;
  }
  if (in_charge > 1) throw std::runtime_error("two heads are in charge");
}

std::optional<std::size_t> HeadsWorld::in_charge() const {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const Head& head = heads_[i];
    if (is_up(head) && head.opened && head.leadership->is_in_charge(local(head))) return i;
  }
  return std::nullopt;
}

bool HeadsWorld::has_current_follower() const {
  const auto head = in_charge();
  return head && heads_[*head].leadership->has_current_follower();
}

void HeadsWorld::run_for(Duration time) {
  const TimePoint end = events_.now() + time;
  for (TimePoint at = events_.now(); at < end; at += kStep) {
    events_.at(at, [this] {
      if (faults_) chance();
      for (std::size_t i = 0; i < heads_.size(); ++i) wake(i);
      follow();
      if (chance_.one_in(3)) submit();
    });
  }
  bool is_over = false;
  events_.at(end, [&is_over] { is_over = true; });
  while (!is_over && events_.step()) check();
}

}  // namespace score::sim
