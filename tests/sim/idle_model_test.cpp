// The model runs random parallel programs and checks the decisions of gang::Idleness. Tasks send,
// receive, sleep, poll and compute; messages and reports are delayed, reports are duplicated, links
// break. A job may be called deadlocked only if none of its tasks can ever proceed, and then it
// must be.
#include "gang/job/idleness.hpp"
#include "tests/sim/events.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

namespace score::sim {
namespace {

using namespace std::chrono_literals;

constexpr Duration kCheck = 100ms;      // a slice end
constexpr Duration kHeartbeat = 500ms;  // per node
constexpr Duration kSuspectAfter = 2400ms;
constexpr Duration kDeadlockAfter = 5s;
constexpr Duration kLongest = 1000s;

enum class What : std::uint8_t { Send, Receive, Sleep, Poll, Compute };

struct Op {
  What what{};
  std::size_t peer = 0;
  int tag = 0;
  Duration time{0};
};

struct Task {
  std::size_t node = 0;
  std::vector<Op> program;
  std::size_t at = 0;
  bool waits = false;  // in a receive without a message
  bool computes = false;
  std::uint64_t turn = 0;                            // older timers are void
  std::map<std::pair<std::size_t, int>, int> inbox;  // arrived and not received, by sender and tag

  [[nodiscard]] bool is_over() const { return at == program.size(); }
};

struct Node {
  bool used = false;  // a task has run since the last check
  std::uint64_t sent = 0, received = 0;
  base::Activity seen, reported;
  bool is_linked = true, is_gone = false;
  TimePoint heard{}, last_arrival{};
  std::uint64_t link = 0;  // messages of broken links are lost
};

struct Counts {
  int finished = 0, deadlocked = 0, idle = 0, cuts = 0;
};

class Model {
 public:
  explicit Model(std::uint64_t seed) : chance_(seed) {
    nodes_.resize(chance_.between(std::uint64_t{1}, 4));
    tasks_.resize(std::max<std::size_t>(nodes_.size(), chance_.between(std::uint64_t{2}, 8)));
    members_.ask_all(nodes_.size());
    idleness_.begin(nodes_.size());
    // If nodes may end early, messages must be fast, because only the time decides then.
    stays_ = chance_.one_in(2);
    most_delay_ = stays_ ? Duration{12s} : Duration{2s};
    for (std::size_t i = 0; i < tasks_.size(); ++i) tasks_[i].node = i % nodes_.size();
    write_programs();
  }

  Counts go() {
    for (std::size_t i = 0; i < tasks_.size(); ++i) proceed(i);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      nodes_[n].heard = events_.now();
      check(n);
      beat(n);
      misfortune(n);
    }
    const TimePoint end = events_.now() + kLongest;
    while (!is_done() && events_.now() < end && events_.step()) continue;
    if (was_called_) {
      ++counts_.deadlocked;
    } else if (std::ranges::all_of(tasks_, &Task::is_over)) {
      ++counts_.finished;
    } else {
      ADD_FAILURE() << "neither finished nor called deadlocked";
    }
    return counts_;
  }

 private:
  // Exchanges in one global order never deadlock; some programs lose a message or swap two
  // operations.
  void write_programs() {
    const std::size_t steps = chance_.between(std::uint64_t{5}, 40);
    for (std::size_t i = 0; i < steps; ++i) {
      const std::size_t a = chance_.below(tasks_.size());
      const std::size_t b = (a + 1 + chance_.below(tasks_.size() - 1)) % tasks_.size();
      const int tag = static_cast<int>(chance_.below(3));
      if (chance_.one_in(3)) tasks_[b].program.push_back({What::Poll, a, tag, pause()});
      tasks_[a].program.push_back({What::Send, b, tag, {}});
      tasks_[b].program.push_back({What::Receive, a, tag, {}});
      if (chance_.one_in(3)) tasks_[a].program.push_back({What::Sleep, 0, 0, pause()});
      if (chance_.one_in(3)) tasks_[b].program.push_back({What::Compute, 0, 0, pause()});
    }
    if (chance_.one_in(2)) return;
    std::vector<Op>& broken = tasks_[chance_.below(tasks_.size())].program;
    if (broken.empty()) return;
    const std::size_t at = chance_.below(broken.size());
    if (chance_.one_in(2)) {
      broken.erase(broken.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      std::swap(broken[at], broken[chance_.below(broken.size())]);
    }
  }

  Duration pause() {
    return chance_.one_in(8) ? chance_.between(Duration{5s}, Duration{20s})
                             : chance_.between(Duration{1ms}, Duration{900ms});
  }

  // ---- tasks

  void proceed(std::size_t id) {
    Task& task = tasks_[id];
    task.waits = task.computes = false;
    ++task.turn;
    nodes_[task.node].used = true;
    while (!task.is_over()) {
      const Op& op = task.program[task.at];
      if (op.what == What::Send) {
        send(id, op);
      } else if (op.what == What::Receive) {
        if (!take(task, op)) {
          task.waits = true;
          return;
        }
      } else if (op.what == What::Poll) {  // the next receive takes the message
        if (!task.inbox[{op.peer, op.tag}]) return later(id, op.time);
      } else {
        task.computes = op.what == What::Compute;
        return later(id, op.time);
      }
      ++task.at;
    }
    end_node(task.node);
  }

  void later(std::size_t id, Duration time) {
    events_.after(time, [this, id, turn = tasks_[id].turn] {
      if (tasks_[id].turn != turn) return;
      ++tasks_[id].at;
      proceed(id);
    });
  }

  static bool take(Task& task, const Op& op) {
    int& count = task.inbox[{op.peer, op.tag}];
    if (count == 0) return false;
    --count;
    return true;
  }

  void send(std::size_t from, const Op& op) {
    ++nodes_[tasks_[from].node].sent;
    ++in_flight_;
    const Duration delay = chance_.one_in(10) ? chance_.between(Duration{1ms}, most_delay_)
                                              : chance_.between(Duration{1us}, Duration{1ms});
    events_.after(delay, [this, from, to = op.peer, tag = op.tag] {
      Task& task = tasks_[to];
      --in_flight_;
      ++nodes_[task.node].received;
      ++task.inbox[{from, tag}];
      if (task.is_over()) return;
      const bool polls = task.program[task.at].what == What::Poll;
      if (task.waits || polls) proceed(to);
    });
  }

  // Ends the node after all its tasks have ended, unless the programs wait for each other at their
  // ends.
  void end_node(std::size_t n) {
    const bool is_over = std::ranges::all_of(
        tasks_, [n](const Task& task) { return task.node != n || task.is_over(); });
    if (!is_over || stays_) return;
    nodes_[n].is_gone = true;
    deliver(n, [this, n] {
      members_.gone(n);
      judge();
    });
  }

  // ---- nodes: two equal checks in a row make a report, the first use makes one at once

  void check(std::size_t n) {
    Node& node = nodes_[n];
    if (node.is_gone) return;
    base::Activity now{
        .idle = !node.used, .waits = true, .sent = node.sent, .received = node.received};
    for (const Task& task : tasks_) {
      if (task.node != n) continue;
      now.idle &= !task.computes;
      now.waits &= task.waits || task.is_over();  // in MPI_Finalize, or gone
    }
    now.waits &= now.idle;
    const bool is_settled = !now.idle || now == node.seen;
    if (!now.idle) now = {};
    if (is_settled && !(now == node.reported)) report(n, now);
    node.seen = now;
    node.used = false;
    events_.after(kCheck, [this, n] { check(n); });
  }

  void report(std::size_t n, const base::Activity& activity) {
    nodes_[n].reported = activity;
    const std::uint64_t times = chance_.one_in(4) ? 2 : 1;
    for (std::uint64_t i = 0; i < times; ++i) {
      deliver(n, [this, n, activity] {
        if (members_.is_gone(n)) return;
        idleness_.report(n, activity);
        judge();
      });
    }
  }

  void beat(std::size_t n) {
    deliver(n, [] {});
    events_.after(kHeartbeat, [this, n] { beat(n); });
  }

  // Messages are delivered in order; those on a link that breaks are lost.
  void deliver(std::size_t n, std::function<void()> what) {
    Node& node = nodes_[n];
    if (!node.is_linked) return;
    const Duration delay = chance_.one_in(10) ? chance_.between(Duration{1ms}, Duration{2s})
                                              : chance_.between(Duration{1us}, Duration{5ms});
    node.last_arrival = std::max(node.last_arrival, events_.now() + delay);
    events_.at(node.last_arrival, [this, n, link = node.link, what = std::move(what)] {
      if (nodes_[n].link != link) return;
      nodes_[n].heard = events_.now();
      what();
    });
  }

  void misfortune(std::size_t n) {
    events_.after(chance_.between(Duration{5s}, Duration{60s}), [this, n] {
      ++counts_.cuts;
      ++nodes_[n].link;
      nodes_[n].is_linked = false;
      events_.after(chance_.between(Duration{10ms}, Duration{15s}), [this, n] {
        Node& node = nodes_[n];
        node.is_linked = true;
        node.last_arrival = events_.now();
        if (node.is_gone) {
          end_node(n);
        } else {
          report(n, node.reported);
        }
        misfortune(n);
      });
    });
  }

  // ---- the head

  [[nodiscard]] bool is_heard() const {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (members_.is_gone(n)) continue;
      if (!nodes_[n].is_linked || events_.now() - nodes_[n].heard > kSuspectAfter) return false;
    }
    return true;
  }

  void judge() {
    if (members_.remaining() == 0) return;
    const auto before = idleness_.activity();
    const auto activity =
        idleness_.judge(members_, events_.now(), {1s, kDeadlockAfter, is_heard()});
    if (activity == gang::JobActivity::Deadlocked) {
      was_called_ = true;
      EXPECT_FALSE(can_proceed()) << "called deadlocked at "
                                  << events_.now().time_since_epoch().count();
    }
    counts_.idle += activity == gang::JobActivity::Idle && before != activity ? 1 : 0;
    if (const auto again = idleness_.judge_again()) {
      events_.at(*again, [this, at = *again] {
        if (idleness_.judge_again() == at) judge();
      });
    }
  }

  // Returns the truth: a task that waits only for messages proceeds only if one exists or will
  // come.
  [[nodiscard]] bool can_proceed() const {
    if (in_flight_ > 0) return true;
    return std::ranges::any_of(tasks_,
                               [](const Task& task) { return !task.is_over() && !task.waits; });
  }

  [[nodiscard]] bool is_done() const {
    return was_called_ || std::ranges::all_of(tasks_, &Task::is_over);
  }

  Chance chance_;
  Events events_;
  std::vector<Task> tasks_;  // [rank]
  std::vector<Node> nodes_;  // [member]
  gang::Members members_;
  gang::Idleness idleness_;
  Counts counts_;
  Duration most_delay_{0};
  int in_flight_ = 0;
  bool stays_ = false;
  bool was_called_ = false;
};

TEST(IdleModel, OnlyStuckProgramsAreCalledDeadlocked) {
  Counts all;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    const Counts counts = Model(seed).go();
    all.finished += counts.finished;
    all.deadlocked += counts.deadlocked;
    all.idle += counts.idle;
    all.cuts += counts.cuts;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(all.finished + all.deadlocked, 2000);
  EXPECT_GT(all.finished, 1000);
  EXPECT_GT(all.deadlocked, 200) << "a run that observed nothing proves nothing";
  EXPECT_GT(all.idle, 2000);
  EXPECT_GT(all.cuts, 1000);
}

}  // namespace
}  // namespace score::sim
