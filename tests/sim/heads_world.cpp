#include "tests/sim/heads_world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace score::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kFirstNode = 2;  // index in cuts_
constexpr Duration kStep = 20ms;       // interval of timers, clients and faults

}  // namespace

HeadsWorld::HeadsWorld(const HeadsOptions& options)
    : options_(options), chance_(options.seed), nodes_(options.nodes), faults_(options.has_faults) {
  for (Head& head : heads_) head.rate = 0.99 + 0.0002 * static_cast<double>(chance_.below(100));
  for (Node& node : nodes_) node.rate = 0.99 + 0.0002 * static_cast<double>(chance_.below(100));
  for (std::size_t i = 0; i < nodes_.size(); ++i) start_node(i, true);
  for (std::size_t i = 0; i < heads_.size(); ++i) start(i);
}

TimePoint HeadsWorld::local(double rate) const {
  return TimePoint(Duration(static_cast<std::int64_t>(
      static_cast<double>(events_.now().time_since_epoch().count()) * rate)));
}

// ---- processes ----------------------------------------------------------------------------------

void HeadsWorld::start(std::size_t i) {
  Head& head = heads_[i];
  head.life = ++head.lives;
  gang::Leadership::Settings settings;
  settings.self = static_cast<gang::HeadIndex>(i);
  settings.nodes = nodes_.size();
  head.leadership = std::make_unique<gang::Leadership>(settings, head.disk.position, head.disk.term,
                                                       local(head.rate));
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
  head.leadership.reset();
  ++seen_.crashes;
  if (Head& other = heads_[1 - i]; other.life != 0) other.leadership->other_gone();
  end_stream();
}

void HeadsWorld::restart(std::size_t i) {
  if (heads_[i].life == 0) start(i);
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

void HeadsWorld::ask(std::size_t from, const gang::LeaseRequest& request) {
  const std::uint64_t life = heads_[from].life;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    send(from, kFirstNode + n, [this, from, n, life, request] {
      Node& node = nodes_[n];
      if (!node.witness) return;
      const auto reply = node.witness->answer(request, local(node.rate));
      node.memory = node.witness->memory();
      send(kFirstNode + n, from, [this, from, n, life, reply] {
        Head& head = heads_[from];
        if (head.life != life) return;
        perform(from, head.leadership->node_replied(n, reply, local(head.rate)));
      });
    });
  }
  const std::size_t to = 1 - from;
  send(from, to, [this, from, to, life, request] {
    Head& other = heads_[to];
    if (other.life == 0) return;
    const auto reply = other.leadership->answer(request, local(other.rate));
    send(to, from, [this, from, life, reply] {
      Head& head = heads_[from];
      if (head.life != life) return;
      perform(from, head.leadership->other_replied(reply, local(head.rate)));
    });
  });
}

void HeadsWorld::perform(std::size_t i, gang::LeadershipActions actions) {
  for (const auto& action : actions) {
    Head& head = heads_[i];
    if (const auto* asks = std::get_if<gang::AskWitnesses>(&action)) ask(i, asks->request);
    if (const auto* stores = std::get_if<gang::StoreTerm>(&action)) {
      events_.after(chance_.between(1ms, 20ms), [this, i, life = head.life, term = stores->term] {
        Head& self = heads_[i];
        if (self.life != life) return;
        self.disk.term = term;
        perform(i, self.leadership->term_stored(term, local(self.rate)));
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
  for (const std::uint64_t entry : acknowledged_) {
    if (std::ranges::find(head.disk.log, entry) != head.disk.log.end()) continue;
    throw std::runtime_error(fmt::format("head {} takes charge without entry {}", i, entry));
  }
  events_.after(chance_.between(1ms, 300ms), [this, i, life = head.life, term] {
    Head& self = heads_[i];
    if (self.life != life) return;
    self.disk.position = {term, 0};
    self.opened = true;
  });
}

void HeadsWorld::submit() {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    Head& head = heads_[i];
    if (head.life == 0 || !head.opened || !head.leadership->is_in_charge(local(head.rate)))
      continue;
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
      self.leadership->committed(sequence);
      if (self.ships_from) ship(i, self.disk, false);
      settle(i);
    });
  }
}

// Answers the clients whose entries may be acknowledged.
void HeadsWorld::settle(std::size_t i) {
  Head& head = heads_[i];
  const std::uint64_t reached = head.leadership->acknowledged(local(head.rate));
  while (!head.waiting.empty() && head.waiting.front().first <= reached) {
    acknowledged_.insert(head.waiting.front().second);
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
      perform(i, head.leadership->follower_lost(local(head.rate)));
    }
    head.ships_from.reset();
  }
}

// The follower connects to the active head unless they are partitioned.
void HeadsWorld::follow() {
  if (is_cut(0, 1)) return;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    Head& head = heads_[i];
    const Head& other = heads_[1 - i];
    if (head.life == 0 || other.life == 0 || !head.opened || head.ships_from) continue;
    if (other.leadership->role() != gang::LeadershipRole::Follower) continue;
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
    if (stream == stream_ && !is_cut(0, 1)) store(to, state, stream);
  });
}

void HeadsWorld::store(std::size_t at, Disk state, std::uint64_t stream) {
  Head& follower = heads_[at];
  // A head that is a candidate in an election accepts nothing more.
  if (follower.life == 0 || follower.leadership->role() != gang::LeadershipRole::Follower) {
    return end_stream();
  }
  follower.disk.log = state.log;
  follower.disk.position = state.position;
  follower.leadership->stored(state.position);
  events_.after(chance_.between(100us, 10ms), [this, at, stream, state] {
    Head& leader = heads_[1 - at];
    if (stream != stream_ || is_cut(0, 1) || leader.life == 0) return;
    if (leader.leadership->term() != state.position.term) return;
    const TimePoint now_there = local(leader.rate);
    if (!leader.leadership->has_current_follower()) {
      perform(1 - at, leader.leadership->follower_current(state.position.sequence, now_there));
    } else {
      leader.leadership->follower_stored(state.position.sequence);
    }
    if (leader.life != 0 && leader.leadership) settle(1 - at);
  });
}

// ---- time and faults ----------------------------------------------------------------------------

void HeadsWorld::wake(std::size_t i) {
  Head& head = heads_[i];
  if (head.life == 0) return;
  perform(i, head.leadership->tick(local(head.rate)));
  if (heads_[i].leadership) settle(i);
}

void HeadsWorld::cut(std::size_t a, std::size_t b, bool is_cut) {
  for (const auto& way : {std::pair(a, b), std::pair(b, a)}) {
    if (is_cut) cuts_.insert(way);
    if (!is_cut) cuts_.erase(way);
  }
  if (a < kFirstNode && b < kFirstNode) end_stream();
}

void HeadsWorld::chance() {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    if (chance_.one_in(900)) {
      if (heads_[i].life != 0) crash(i);
    } else if (chance_.one_in(100)) {
      restart(i);
    }
  }
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (chance_.one_in(2'000)) {
      nodes_[n].witness.reset();
    } else if (!nodes_[n].witness && chance_.one_in(100)) {
      const bool forgets = chance_.one_in(2);
      if (forgets) ++seen_.reboots;
      start_node(n, forgets);
    }
  }
  if (chance_.one_in(300)) {  // one link, or one head from some of the nodes
    const std::size_t a = chance_.below(2);
    ++seen_.partitions;
    if (chance_.one_in(2)) cut(0, 1, true);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (chance_.one_in(2)) cut(a, kFirstNode + n, true);
    }
  }
  if (chance_.one_in(150)) {
    cuts_.clear();
  }
}

void HeadsWorld::heal() {
  faults_ = false;
  cuts_.clear();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!nodes_[n].witness) start_node(n, false);
  }
  for (std::size_t i = 0; i < heads_.size(); ++i) restart(i);
}

void HeadsWorld::check() {
  std::size_t in_charge = 0;
  for (const Head& head : heads_) {
    if (head.life != 0 && head.leadership->is_in_charge(local(head.rate))) ++in_charge;
  }
  if (in_charge > 1) throw std::runtime_error("two heads are in charge");
}

std::optional<std::size_t> HeadsWorld::in_charge() const {
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const Head& head = heads_[i];
    if (head.life != 0 && head.opened && head.leadership->is_in_charge(local(head.rate))) return i;
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
