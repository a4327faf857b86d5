#include "scored/node/attempts/attempts.hpp"

#include "base/os/log.hpp"
#include "base/os/spawn.hpp"
#include "scored/node/attempts/process_tree.hpp"

#include <algorithm>
#include <csignal>
#include <unistd.h>

namespace score::node {

namespace {

// A shepherd reports the end of its killed tasks at once, unless it is stuck or hostile.
constexpr Duration kStubborn = std::chrono::seconds{2};
constexpr Duration kKillAgain = std::chrono::milliseconds{50};
// Removing: a shepherd ends by itself when it is told to.
constexpr Duration kEndGrace = std::chrono::milliseconds{500};
constexpr Duration kRemoveLimit = std::chrono::seconds{10};
constexpr Duration kRemoveAgainFirst = std::chrono::milliseconds{2};
constexpr Duration kRemoveAgainMost = std::chrono::milliseconds{100};

}  // namespace

Attempts::Attempts(Parts parts, Settings settings, Handlers handlers)
    : parts_(std::move(parts)), settings_(std::move(settings)), handlers_(std::move(handlers)) {}

Attempts::AttemptPtr Attempts::find(AttemptId attempt) const {
  const auto found = attempts_.find(attempt);
  return found == attempts_.end() ? nullptr : found->second;
}

Attempts::AttemptPtr Attempts::add(AttemptId attempt, std::optional<UserId> user) {
  auto made = std::make_shared<Attempt>();
  made->id = attempt;
  made->user = user;
  made->socket = user ? fmt::format("{}/{}.{}.sock", settings_.directory, attempt, *user)
                      : fmt::format("{}/{}.sock", settings_.directory, attempt);
  attempts_[attempt] = made;
  return made;
}

std::vector<Attempts::RunningTasks> Attempts::running() const {
  std::vector<RunningTasks> tasks;
  for (const auto& [id, attempt] : attempts_) {
    if (attempt->is_removed || attempt->tasks.empty()) continue;
    tasks.push_back({id, attempt->ranks, attempt->tasks, attempt->shepherd});
  }
  return tasks;
}

std::size_t Attempts::running_count() const {
  return static_cast<std::size_t>(std::count_if(
      attempts_.begin(), attempts_.end(),
      [](const auto& one) { return !one.second->is_removed && !one.second->tasks.empty(); }));
}

void Attempts::start(AttemptId id) {
  const auto attempt = find(id);
  if (!attempt || !attempt->connection) return;
  wire::StartTasks message;
  message.set_attempt(id.value());
  send(*attempt->connection, message);
}

void Attempts::signal(AttemptId id, int number) {
  const auto attempt = find(id);
  if (!attempt || !attempt->connection) return;
  wire::SignalTasks message;
  message.set_attempt(id.value());
  message.set_signal(number);
  send(*attempt->connection, message);
}

// ---- killing ------------------------------------------------------------------------------------

void Attempts::kill(AttemptId id) {
  const auto attempt = find(id);
  if (!attempt || attempt->is_removed) return;
  if (!attempt->is_killed) note_ending(*attempt);
  kill_tasks(*attempt);
  if (!std::exchange(attempt->is_killed, true)) {
    parts_.tasks.spawn("kill an attempt", run_kill(attempt));
  }
}

// Who ends already does so by itself, and may be why the others are to be killed.
void Attempts::note_ending(Attempt& attempt) {
  for (std::size_t i = 0; i < std::min(attempt.tasks.size(), attempt.ranks.size()); ++i) {
    if (attempt.tasks[i] > 0 && is_ending(attempt.tasks[i]))
      attempt.was_ending.push_back(attempt.ranks[i]);
  }
}

// The shepherd is told too: tasks that it has not started yet cannot be killed, only given up.
void Attempts::kill_tasks(Attempt& attempt) {
  signal(attempt.id, SIGKILL);
  if (parts_.cgroups == nullptr) {
    kill_tree(attempt.shepherd, attempt.group);
  } else if (auto killed = parts_.cgroups->kill_tasks(attempt.id); !killed) {
    log_warning("kill failed: trying again", kv("attempt", attempt.id), kv("err", killed.error()));
  }
}

void Attempts::kill_everything(Attempt& attempt) {
  if (parts_.cgroups != nullptr) {
    [[maybe_unused]] auto killed = parts_.cgroups->kill_all(attempt.id);
    return;
  }
  kill_tree(attempt.shepherd, attempt.group);
  if (attempt.pidfd) [[maybe_unused]]
    auto sent = send_signal(attempt.pidfd.get(), SIGKILL);
}

asio::awaitable<void> Attempts::run_kill(AttemptPtr attempt) {
  const TimePoint give_up = parts_.clock.now() + kStubborn;
  while (!attempt->is_removed && parts_.clock.now() < give_up) {
    co_await parts_.clock.sleep_for(kKillAgain);
    // A cgroup dies as a whole; a tree may have forked while it was walked.
    if (!attempt->is_removed && parts_.cgroups == nullptr) {
      kill_tree(attempt->shepherd, attempt->group);
    }
  }
  if (attempt->is_removed) co_return;
  log_warning("kill a shepherd that does not report the end of its tasks",
              kv("attempt", attempt->id));
  kill_everything(*attempt);
}

// ---- removing -----------------------------------------------------------------------------------

void Attempts::remove(AttemptId id) {
  const auto attempt = find(id);
  if (!attempt || std::exchange(attempt->is_removed, true)) return;
  parts_.switcher.remove(id);
  parts_.networks.remove(id);
  parts_.launcher.forget(id);
  if (attempt->connection) send(*attempt->connection, wire::ShepherdEnd());
  unlink(attempt->socket.c_str());
  parts_.tasks.spawn("remove an attempt", run_remove(attempt));
}

bool Attempts::is_gone(const Attempt& attempt) const {
  if (parts_.cgroups != nullptr) return parts_.cgroups->remove(attempt.id).has_value();
  return !attempt.pidfd || !send_signal(attempt.pidfd.get(), 0);
}

asio::awaitable<void> Attempts::run_remove(AttemptPtr attempt) {
  const TimePoint start = parts_.clock.now();
  Duration pause = kRemoveAgainFirst;
  while (!is_gone(*attempt)) {
    const Duration waited = parts_.clock.now() - start;
    if (waited > kRemoveLimit) {
      log_error("leave what cannot be removed", kv("attempt", attempt->id));
      break;
    }
    if (waited > kEndGrace) kill_everything(*attempt);
    co_await parts_.clock.sleep_for(pause);
    pause = std::min(pause * 2, kRemoveAgainMost);
  }
  if (attempt->connection) attempt->connection->close();
  if (find(attempt->id) == attempt) attempts_.erase(attempt->id);
}

}  // namespace score::node
