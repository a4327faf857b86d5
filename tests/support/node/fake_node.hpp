// Provides tests with a follower whose attempts are not processes, on a clock that the test moves.
#pragma once

#include "scored/node/switch/switch_follower.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

namespace score::node::test {

using gang::SwitchPlan;

inline TimePoint g_now{};
inline Duration g_tick{0};  // time between two readings of the clock

inline TimePoint fake_now() {
  return g_now += g_tick;
}

inline void fake_sleep(TimePoint until) {
  g_now = std::max(g_now, until);
}

struct FakeTarget final : SwitchTarget {
  int stop() noexcept override {
    ++stops;
    clock_ran_at_stop = clock != nullptr && clock->is_running();
    if (error == 0) is_running = false;
    return error;
  }

  int go() noexcept override {
    if (error == 0) is_running = true;
    return error;
  }

  int set_low(bool low) noexcept override {
    if (low_error == 0) is_low = low;
    return low_error;
  }

  bool can_fill() const override { return fills; }

  [[nodiscard]] Role role() const {
    if (!is_running) return Role::Stopped;
    return is_low ? Role::Fills : Role::Runs;
  }

  explicit FakeTarget(bool may_fill = true) : fills(may_fill) {}

  const bool fills;
  bool is_low = false;
  int low_error = 0;
  bool is_running = true;
  int stops = 0;
  int error = 0;
  const RunClock* clock = nullptr;  // the clock of its entry
  bool clock_ran_at_stop = false;
};

// Reads the processor time that the test counts for an attempt.
struct CountedUsage final : CpuUsage {
  explicit CountedUsage(const Duration& total) : counted(total) {}

  Duration used() noexcept override { return counted; }

  Duration waited() noexcept override { return Duration{0}; }

  Duration used_by(pid_t) noexcept override { return Duration{-1}; }

  const Duration& counted;
};

struct Node {
  Node() {
    g_now = TimePoint{1s};
    g_tick = Duration{0};
  }

  FakeTarget& add(std::uint64_t id, std::unique_ptr<CpuUsage> usage = nullptr,
                  bool may_fill = true) {
    auto target = std::make_unique<FakeTarget>(may_fill);
    targets.push_back(target.get());
    entries.push_back(
        std::make_shared<SwitchEntry>(AttemptId{id}, std::move(target), std::move(usage)));
    entries.back()->clock.start(g_now);
    targets.back()->clock = &entries.back()->clock;
    return *targets.back();
  }

  // Adds an attempt that is known to leave time in its turns; `used` must outlive it.
  FakeTarget& add_sleeper(std::uint64_t id, const Duration& used, bool may_fill = true) {
    FakeTarget& target = add(id, std::make_unique<CountedUsage>(used), may_fill);
    IdleWatch& watch = entries.back()->watch;
    for (int turn = 0; turn < 2; ++turn) {
      watch.goes_on(TimePoint{turn * 200ms});
      watch.stops(TimePoint{turn * 200ms + 100ms}, WatchPace{});
    }
    return target;
  }

  void follow(std::vector<SwitchPlan> plans) {
    program = std::make_unique<SwitchProgram>(std::move(plans), entries);
    follower.take(program.get());
  }

  std::optional<TimePoint> step(TimePoint at) {
    g_now = at;
    return follower.step();
  }

  SwitchTrace trace;
  SwitchCounters counters;
  std::atomic<Duration::rep> guard_ns{0};
  SwitchFollower follower{{&fake_now, &fake_sleep, guard_ns}, trace, counters};
  std::vector<FakeTarget*> targets;
  std::vector<std::shared_ptr<SwitchEntry>> entries;
  std::unique_ptr<SwitchProgram> program;
  std::optional<TimePoint> next;
};

inline std::vector<AttemptId> ids(std::vector<std::uint64_t> numbers) {
  std::vector<AttemptId> made;
  for (const auto number : numbers) made.push_back(AttemptId{number});
  return made;
}

// Makes a plan in which 1 and 2 take turns of 100 ms from `start` on.
inline SwitchPlan turns(TimePoint start) {
  return {Epoch{1}, start, 200ms, {{0ms, 100ms, ids({1})}, {100ms, 100ms, ids({2})}}, ids({1, 2})};
}

// Gives two attempts the same socket.
struct SharedChannel {
  explicit SharedChannel(Node& node) {
    socket = *sockets.open({UserId(0), 0, 0}, {.s_addr = htonl(INADDR_LOOPBACK)});
    for (const std::uint64_t key : {1, 2}) {
      users.push_back(std::make_shared<ChannelUser>(key, nullptr, ChannelUser::Sockets{socket}));
      users.back()->make_room();
    }
    node.follow({turns(TimePoint{1s})});
    node.program->networks = users;
    node.follower.take(node.program.get());
  }

  ChannelSockets sockets;
  std::shared_ptr<ChannelSocket> socket;
  std::vector<std::shared_ptr<ChannelUser>> users;
};

}  // namespace score::node::test
