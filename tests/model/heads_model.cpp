#include "tests/model/heads_model.hpp"

#include "tests/model/heads_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <unordered_set>
#include <utility>

namespace score::gang {

// StateHash makes 128 bits of many numbers.
struct StateHash {
  std::uint64_t a = 0x9e3779b97f4a7c15ULL;
  std::uint64_t b = 0xc2b2ae3d27d4eb4fULL;

  void add(std::uint64_t value) {
    a = (a ^ value) * 0xff51afd7ed558ccdULL;
    a ^= a >> 32U;
    b = (b + value) * 0xc4ceb9fe1a85ec53ULL;
    b ^= b >> 29U;
  }

  // Beyond these bounds two times make no difference.
  void add_time(TimePoint time, TimePoint now) {
    add(static_cast<std::uint64_t>(
        std::clamp<std::int64_t>((time - now) / std::chrono::seconds(1), -5, 9) + 16));
  }

  void add(LogPosition position) { add(position.term.value() << 32U | position.sequence); }

  void add(const LogMark& mark) {
    add(mark.term.value() << 32U | mark.version << 8U | mark.heads);
    add(mark.position);
  }

  friend bool operator==(const StateHash&, const StateHash&) = default;
};

struct LeadershipState {
  static void add(StateHash& hash, const Witness& witness, TimePoint now) {
    const Witness::Memory& memory = witness.memory();
    hash.add(memory.term.value() << 8U | memory.holder.value_or(kHeads));
    hash.add(memory.mark);
    hash.add_time(witness.until(), now);
  }

  static void add(StateHash& hash, const Leadership::Vote& vote, TimePoint now) {
    hash.add(vote.is_granted ? 1 : 0);
    hash.add_time(vote.until, now);
    if (!vote.last) return;
    const LeaseReply& reply = *vote.last;
    hash.add((reply.granted ? 1U : 0U) | (reply.is_free ? 2U : 0U) | reply.term.value() << 2U |
             reply.asked.value() << 32U);
    hash.add(reply.mark);
    hash.add(reply.position);
    hash.add_time(reply.sent, now);
  }

  static void add(StateHash& hash, const Leadership& one, TimePoint now) {
    add(hash, one.own_, now);
    if (one.before_candidacy_) add(hash, *one.before_candidacy_, now);
    hash.add(static_cast<std::uint64_t>(one.role_) | (one.is_term_stored_ ? 8U : 0U) |
             one.term_.value() << 8U | one.heads_since_ << 32U);
    hash.add(one.position_);
    hash.add(one.known_);
    hash.add(one.mark_);
    hash.add_time(one.candidacy_ends_, now);
    hash.add_time(one.next_, now);
    hash.add_time(one.patience_ends_, now);
    add(hash, one.other_, now);
    hash.add(one.follower_.value_or(99) << 32U | one.acknowledged_);
  }

  static void add_vote(StateHash& hash, const Leadership& one, std::size_t witness, TimePoint now) {
    add(hash, one.votes_[witness], now);
  }
};

}  // namespace score::gang

namespace score::gang::model {
namespace {

class Model {
 public:
  explicit Model(const World& world) : world_(world), steps_(world) {}

  Findings explore();

 private:
  struct Step {
    std::uint32_t parent = 0;
    std::uint32_t label = 0;
  };

  void check(const State& state);
  void check_progress(const State& state);
  [[nodiscard]] bool is_complete(const State& state, std::size_t i) const;
  [[nodiscard]] StateHash hash(const State& state) const;

  void expand(const State& state);
  template <class Change>
  void visit(const State& state, std::uint32_t label, Change change);
  void expand_head(const State& state, std::size_t i);
  void expand_faults(const State& state, std::size_t i);
  void expand_links(const State& state);
  void expand_lies(const State& state);

  [[nodiscard]] std::string describe(const State& state) const;
  [[nodiscard]] std::string trace(std::uint32_t at, std::uint32_t label) const;

  void fail(const std::string& what) {
    if (findings_.broken.empty()) findings_.broken = what;
  }

  World world_;
  Steps steps_;
  Findings findings_;
  std::deque<std::pair<State, std::uint32_t>> frontier_;
  std::vector<Step> trail_;

  struct HashOf {
    std::size_t operator()(const StateHash& one) const { return one.a; }
  };

  std::unordered_set<StateHash, HashOf> known_;
  std::uint32_t parent_ = 0;
};

// ---- claims -------------------------------------------------------------------------------------

void Model::check(const State& state) {
  if (state.has_elected_earlier && !state.has_old_disk)
    fail("a head is elected in an earlier term");
  std::size_t in_charge = 0;
  const std::uint32_t sure =
      state.has_old_disk ? state.acknowledged & ~state.unwitnessed : state.acknowledged;
  for (std::size_t i = 0; i < kHeads; ++i) {
    const Head& head = state.heads[i];
    if (!head.core || head.core->role() != LeadershipRole::Leader) continue;
    if (head.core->is_in_charge(steps_.local(state, i))) ++in_charge;
    if (head.core->term() != state.elected) continue;
    if (state.has_old_disk && state.is_blind) continue;
    if ((sure & ~head.disk.log) != 0) {
      fail(fmt::format("head {} leads without the acknowledged changes {:b} (it has {:b})", i,
                       sure & ~head.disk.log, head.disk.log));
    }
  }
  if (in_charge > 1 && !state.has_stopped) fail("two heads are in charge");
}

std::string Model::describe(const State& state) const {
  std::string text;
  for (std::size_t i = 0; i < kHeads; ++i) {
    const Head& head = state.heads[i];
    if (!head.core) continue;
    const std::string why = head.core->why_not(steps_.local(state, i));
    text +=
        fmt::format("; head {}: term {}, {}", i, head.core->term(), why.empty() ? "leads" : why);
  }
  return text;
}

// Returns true if a quorum of the honest witnesses has marks, and the newest one includes the head.
bool Model::is_complete(const State& state, std::size_t i) const {
  LogMark newest;
  std::size_t have = 0;
  for (std::size_t w = 0; w + (world_.has_liar ? 1 : 0) < state.witnesses.size(); ++w) {
    const LogMark& mark = state.witnesses[w].memory().mark;
    if (mark.term != Epoch()) ++have;
    if (newest.is_older_than(mark)) newest = mark;
  }
  return have >= (world_.witnesses + world_.liars) / 2 + 1 &&
         newest.includes(static_cast<HeadIndex>(i));
}

void Model::check_progress(const State& reached) {
  if (reached.has_old_disk) return;  // it may need --recover
  ++findings_.progress_checks;
  State both = reached;
  steps_.heal(both);
  for (int i = 0; i < kTicksToLead && !steps_.is_settled(both); ++i) steps_.work(both);
  if (!steps_.is_settled(both)) {
    return fail("no head leads with a follower although all faults ended" + describe(both));
  }
  if (reached.has_forgotten) return;
  for (std::size_t i = 0; i < kHeads; ++i) {
    if (!is_complete(reached, i)) continue;
    State alone = reached;
    steps_.heal(alone);
    steps_.crash(alone, 1 - i);
    for (int n = 0; n < kTicksToLead && !steps_.is_settled(alone); ++n) steps_.work(alone);
    if (!steps_.is_settled(alone))
      fail(fmt::format("head {} does not lead alone{}", i, describe(alone)));
  }
}

// ---- search -------------------------------------------------------------------------------------

StateHash Model::hash(const State& state) const {
  StateHash all;
  for (std::size_t i = 0; i < kHeads; ++i) {
    const Head& head = state.heads[i];
    all.add((head.core ? 1U : 0U) | (head.is_opened ? 2U : 0U) | (head.is_stopped ? 4U : 0U) |
            (head.ships ? 8U : 0U) | (head.copy ? 16U : 0U) | head.follows.value() << 8U);
    all.add(head.disk.key());
    all.add(head.disk.position);
    if (head.copy) {
      all.add(head.copy->key());
      all.add(head.copy->position);
    }
    for (const auto& [sequence, entry] : head.waiting) all.add(sequence << 8U | entry);
    if (head.core) LeadershipState::add(all, *head.core, steps_.local(state, i));
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> each;
  for (std::size_t w = 0; w < state.witnesses.size(); ++w) {
    StateHash one;
    LeadershipState::add(one, state.witnesses[w], state.now);
    for (std::size_t i = 0; i < kHeads; ++i) {
      one.add((steps_.is_cut(state, i, kHeads + w) ? 1U : 0U) |
              (steps_.is_cut(state, kHeads + w, i) ? 2U : 0U));
      if (state.heads[i].core) {
        LeadershipState::add_vote(one, *state.heads[i].core, w, steps_.local(state, i));
      }
    }
    if (world_.has_liar && w + 1 == state.witnesses.size()) one.add(99);
    if (w == 0 && (state.late || state.holds_request || state.holds_reply)) one.add(98);
    each.emplace_back(one.a, one.b);
  }
  std::ranges::sort(each);  // the witnesses are alike
  for (const auto& [a, b] : each) {
    all.add(a);
    all.add(b);
  }
  if (world_.has_liar) {
    all.add((state.lie.is_on ? 1U : 0U) | (state.lie.grants ? 2U : 0U));
    all.add(state.lie.mark);
    for (const LogMark& mark : state.seen) all.add(mark);
  }
  if (state.late) {
    all.add(state.late->head | (state.late->is_reply ? 8U : 0U) |
            state.late->request.term.value() << 8U);
    all.add(state.late->request.mark);
    all.add_time(state.late->request.sent, steps_.local(state, state.late->head));
  }
  all.add(static_cast<std::uint64_t>(state.cuts & (steps_.link(0, 1) | steps_.link(1, 0))) << 32U |
          state.acknowledged << 16U | state.unwitnessed);
  all.add(state.next_entry | (state.has_old_disk ? 256U : 0U) | (state.has_stopped ? 512U : 0U) |
          (state.holds_request ? 1024U : 0U) | (state.holds_reply ? 2048U : 0U) |
          (state.has_forgotten ? 4096U : 0U) | (state.is_blind ? 8192U : 0U) |
          state.elected.value() << 16U);
  const Faults& left = state.left;
  for (const int one :
       {left.cuts, left.late, left.crashes, left.old_disks, left.stops, left.forgets, left.lies}) {
    all.add(static_cast<std::uint64_t>(one));
  }
  return all;
}

constexpr std::array kLabels = {"tick",
                                "tick (1 first)",
                                "submit",
                                "open",
                                "replicate",
                                "replicate, report lost",
                                "follower lost",
                                "crash",
                                "start",
                                "copy the disk",
                                "start on the copy",
                                "stop",
                                "continue",
                                "cut or heal",
                                "hold a request",
                                "hold a reply",
                                "late arrives",
                                "witness forgets",
                                "lie"};

enum Label : std::uint32_t {
  kTick0,
  kTick1,
  kSubmit,
  kOpen,
  kReplicate,
  kReplicateLost,
  kLost,
  kCrash,
  kStart,
  kCopy,
  kStartOld,
  kStop,
  kContinue,
  kCut,
  kHoldRequest,
  kHoldReply,
  kLateArrives,
  kForget,
  kLie
};

constexpr std::uint32_t label(Label what, std::size_t where) {
  return static_cast<std::uint32_t>(what) << 8U | static_cast<std::uint32_t>(where);
}

std::string Model::trace(std::uint32_t at, std::uint32_t last) const {
  std::vector<std::uint32_t> labels = {last};
  for (; at != 0; at = trail_[at].parent) labels.push_back(trail_[at].label);
  std::string text;
  for (auto one = labels.rbegin(); one != labels.rend(); ++one) {
    text += fmt::format("\n  {} {}", kLabels.at(*one >> 8U), *one & 0xffU);
  }
  return text;
}

template <class Change>
void Model::visit(const State& state, std::uint32_t what, Change change) {
  if (!findings_.broken.empty() || findings_.truncated) return;
  State next = state;
  change(next);
  steps_.settle(next);
  check(next);
  if (findings_.broken.empty()) {
    if (next.elected.value() > world_.terms || !known_.insert(hash(next)).second) return;
    if (known_.size() % world_.progress_every == 0) check_progress(next);
  }
  if (!findings_.broken.empty()) {
    findings_.broken += trace(parent_, what);
    return;
  }
  ++findings_.states;
  if (next.acknowledged != 0) ++findings_.acknowledged;
  if (next.elected > Epoch(2)) ++findings_.second_terms;
  if (findings_.states >= world_.max_states) findings_.truncated = true;
  trail_.push_back({parent_, what});
  frontier_.emplace_back(std::move(next), static_cast<std::uint32_t>(trail_.size() - 1));
}

void Model::expand_head(const State& state, std::size_t i) {
  const Head& head = state.heads[i];
  if (!steps_.is_up(state, i) || head.core->role() != LeadershipRole::Leader) return;
  if (!head.is_opened) visit(state, label(kOpen, i), [&](State& s) { steps_.open(s, i); });
  const bool can_submit = head.is_opened && state.next_entry < world_.entries &&
                          head.core->is_in_charge(steps_.local(state, i));
  if (can_submit) visit(state, label(kSubmit, i), [&](State& s) { steps_.submit(s, i); });
  if (steps_.can_replicate(state, i)) {
    visit(state, label(kReplicate, i), [&](State& s) { steps_.replicate(s, i, true); });
    visit(state, label(kReplicateLost, i), [&](State& s) { steps_.replicate(s, i, false); });
  } else if (head.ships) {
    visit(state, label(kLost, i), [&](State& s) { steps_.lose_follower(s, i); });
  }
}

void Model::expand_faults(const State& state, std::size_t i) {
  const Head& head = state.heads[i];
  if (!head.core) {
    visit(state, label(kStart, i), [&](State& s) { steps_.start(s, i); });
    if (state.left.old_disks > 0 && head.copy && head.copy->key() != head.disk.key()) {
      visit(state, label(kStartOld, i), [&](State& s) {
        --s.left.old_disks;
        s.has_old_disk = true;
        s.heads[i].disk = *s.heads[i].copy;
        steps_.start(s, i);
      });
    }
  } else if (state.left.crashes > 0) {
    visit(state, label(kCrash, i), [&](State& s) {
      --s.left.crashes;
      steps_.crash(s, i);
    });
  }
  if (state.left.old_disks > 0 && !head.copy) {
    visit(state, label(kCopy, i), [&](State& s) { s.heads[i].copy = s.heads[i].disk; });
  }
  if (head.core && head.is_stopped) {
    visit(state, label(kContinue, i), [&](State& s) { s.heads[i].is_stopped = false; });
  } else if (head.core && state.left.stops > 0) {
    visit(state, label(kStop, i), [&](State& s) {
      --s.left.stops;
      s.has_stopped = true;
      s.heads[i].is_stopped = true;
    });
  }
}

void Model::expand_links(const State& state) {
  const std::size_t ends = kHeads + state.witnesses.size();
  for (std::size_t from = 0; from < ends && state.left.cuts > 0; ++from) {
    for (std::size_t to = 0; to < ends; ++to) {
      if (from == to || (from >= kHeads && to >= kHeads)) continue;
      visit(state, label(kCut, from << 4U | to), [&](State& s) {
        --s.left.cuts;
        s.cuts ^= steps_.link(from, to);
      });
    }
  }
  if (state.left.late > 0) {
    visit(state, label(kHoldRequest, 0), [&](State& s) {
      --s.left.late;
      s.holds_request = true;
    });
    visit(state, label(kHoldReply, 0), [&](State& s) {
      --s.left.late;
      s.holds_reply = true;
    });
  }
  if (state.late) {
    visit(state, label(kLateArrives, 0), [&](State& s) { steps_.let_late_arrive(s); });
  }
  for (std::size_t w = 0; w < state.witnesses.size() && state.left.forgets > 0; ++w) {
    visit(state, label(kForget, w), [&](State& s) {
      --s.left.forgets;
      s.has_forgotten = true;
      s.witnesses[w] = Witness(Witness::Memory(), timing().lease, s.now);
    });
  }
}

void Model::expand_lies(const State& state) {
  if (!world_.has_liar || state.left.lies == 0) return;
  std::vector<LogMark> marks = state.seen;
  marks.emplace_back();
  if (world_.can_forge) marks.push_back({Epoch(1U << 19U), 1, (1U << kHeads) - 1, {}, {}});
  for (std::size_t mark = 0; mark < marks.size(); ++mark) {
    for (const bool grants : {false, true}) {
      visit(state, label(kLie, mark << 1U | (grants ? 1U : 0U)), [&](State& s) {
        --s.left.lies;
        s.lie = {true, grants, marks[mark]};
      });
    }
  }
}

void Model::expand(const State& state) {
  visit(state, label(kTick0, 0), [&](State& s) { steps_.tick(s, 0); });
  visit(state, label(kTick1, 1), [&](State& s) { steps_.tick(s, 1); });
  for (std::size_t i = 0; i < kHeads; ++i) {
    expand_head(state, i);
    expand_faults(state, i);
  }
  expand_links(state);
  expand_lies(state);
}

Findings Model::explore() {
  trail_.push_back({});
  frontier_.emplace_back(steps_.initial(), 0);
  while (!frontier_.empty() && findings_.broken.empty() && !findings_.truncated) {
    const auto [state, at] = std::move(frontier_.front());
    frontier_.pop_front();
    parent_ = at;
    expand(state);
  }
  return findings_;
}

}  // namespace

Findings explore(const World& world) {
  return Model(world).explore();
}

}  // namespace score::gang::model
