#include "scored/node/attempts/attempt_end.hpp"

#include "base/os/log.hpp"
#include "base/os/spawn.hpp"
#include "proto/convert/convert.hpp"
#include "scored/node/attempts/process_tree.hpp"

#include <algorithm>
#include <csignal>

namespace score::node {

namespace {

// A shepherd reports the end of its killed tasks at once, unless it is stuck or hostile.
constexpr Duration kStubborn = std::chrono::seconds{2};
// A shepherd without tasks waits for a file system or for the user database.
constexpr Duration kStubbornStart = std::chrono::milliseconds{300};
constexpr Duration kKillAgain = std::chrono::milliseconds{50};
// During removal a shepherd ends by itself on ShepherdEnd.
constexpr Duration kEndGrace = std::chrono::milliseconds{500};
constexpr Duration kRemoveLimit = std::chrono::seconds{10};
// A shepherd also removes a volume's data, which may be large.
constexpr Duration kVolumeGrace = std::chrono::minutes{2};
constexpr Duration kLastWords = std::chrono::milliseconds{50};
constexpr Duration kRemoveAgainFirst = std::chrono::milliseconds{2};
constexpr Duration kRemoveAgainMost = std::chrono::milliseconds{100};

// Records the tasks that are already ending. They do so by themselves, and may be the reason why
// the others are killed.
void note_ending(Attempt& attempt) {
  for (std::size_t i = 0; i < std::min(attempt.tasks.size(), attempt.ranks.size()); ++i) {
    if (attempt.tasks[i] > 0 && is_ending(attempt.tasks[i]))
      attempt.was_ending.push_back(attempt.ranks[i]);
  }
}

// Returns false if the shepherd has ended. A container may refuse pidfds.
bool signal_shepherd(const Attempt& attempt, int signal) {
  if (attempt.pidfd) return send_signal(attempt.pidfd.get(), signal).has_value();
  return attempt.shepherd > 0 && ::kill(attempt.shepherd, signal) == 0;
}

}  // namespace

void send_signal_to_tasks(const Attempt& attempt, int signal) {
  if (!attempt.connection) return;
  wire::SignalTasks message;
  message.set_attempt(attempt.id.value());
  message.set_signal(signal);
  send(*attempt.connection, message);
}

void AttemptEnd::kill(const AttemptPtr& attempt) {
  if (attempt->is_removed || attempt->is_retired) return;
  if (!attempt->is_killed) note_ending(*attempt);
  kill_tasks(*attempt);
  if (!std::exchange(attempt->is_killed, true)) {
    parts_.tasks.spawn("kill an attempt", run_kill(attempt));
  }
}

// The shepherd is asked too: tasks that it has not started yet cannot be killed, only cancelled.
void AttemptEnd::kill_tasks(const Attempt& attempt) {
  send_signal_to_tasks(attempt, SIGKILL);
  if (parts_.cgroups == nullptr) {
    kill_tree(attempt.shepherd, attempt.group);
  } else if (auto killed = parts_.cgroups->kill_tasks(attempt.id); !killed) {
    log_warning("Cannot kill the tasks of an attempt; retrying", kv("attempt", attempt.id),
                kv("err", killed.error()));
  }
}

void AttemptEnd::kill_everything(const Attempt& attempt) {
  if (parts_.cgroups != nullptr) {
    [[maybe_unused]] auto killed = parts_.cgroups->kill_all(attempt.id);
    return;
  }
  kill_tree(attempt.shepherd, attempt.group);
  signal_shepherd(attempt, SIGKILL);
}

asio::awaitable<void> AttemptEnd::run_kill(AttemptPtr attempt) {
  const bool has_started = !attempt->tasks.empty();
  const TimePoint give_up = parts_.clock.now() + (has_started ? kStubborn : kStubbornStart);
  const auto has_ended = [](const Attempt& one) {
    return one.is_removed || one.is_retired || one.is_finishing;
  };
  while (!has_ended(*attempt) && parts_.clock.now() < give_up) {
    co_await parts_.clock.sleep_for(kKillAgain);
    // Processes may have forked during a walk.
    if (has_ended(*attempt)) co_return;
    if (parts_.cgroups == nullptr) {
      kill_tree(attempt->shepherd, attempt->group);
    } else {
      std::ignore = parts_.cgroups->kill_tasks(attempt->id);
    }
  }
  if (has_ended(*attempt)) co_return;
  log_warning("Killed a shepherd that did not report the end of its tasks",
              kv("attempt", attempt->id));
  kill_everything(*attempt);
}

bool AttemptEnd::is_gone(const Attempt& attempt) const {
  if (parts_.cgroups != nullptr) return parts_.cgroups->remove(attempt.id).has_value();
  return !is_alive(attempt);
}

bool AttemptEnd::is_alive(const Attempt& attempt) {
  return signal_shepherd(attempt, 0);
}

asio::awaitable<void> AttemptEnd::remove(AttemptPtr attempt) {
  const TimePoint start = parts_.clock.now();
  Duration pause = kRemoveAgainFirst;
  while (!is_gone(*attempt)) {
    Duration waited = parts_.clock.now() - start;
    const bool is_removing = attempt->has_volume && !attempt->is_volume_gone && is_alive(*attempt);
    if (is_removing && waited < kVolumeGrace) waited = Duration{0};
    if (waited > kRemoveLimit + (attempt->has_volume ? kVolumeGrace : Duration{0})) {
      log_error("Cannot remove the cgroup or processes of an attempt", kv("attempt", attempt->id));
      break;
    }
    if (waited > kEndGrace) {
      attempt->is_shepherd_gone = true;
      kill_everything(*attempt);
    }
    co_await parts_.clock.sleep_for(pause);
    pause = std::min(pause * 2, kRemoveAgainMost);
  }
  // The shepherd's last frames may still be in flight.
  if (attempt->has_volume && !attempt->is_volume_gone) co_await parts_.clock.sleep_for(kLastWords);
  if (attempt->connection) attempt->connection->close();
}

}  // namespace score::node
