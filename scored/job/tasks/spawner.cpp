#include "scored/job/tasks/spawner.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "scored/job/tasks/children.hpp"
#include "scored/job/tasks/spawn_wire.hpp"
#include "scored/job/tasks/task_start.hpp"
#include "scored/job/waiting/waiting_server.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <signal.h>
#include <span>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// The spawner (B) may block anywhere; only the shepherd (A) must not wait. B never waits for its
// children: one that ends early stays a zombie, so its pid cannot be assigned to a different
// process before A knows it. When B has exited, they become children of A, the nearest subreaper,
// which reaps them only when it knows their pids.
//
// If programs may start more tasks, B stays, and a child of B forks the tasks of each plan.

namespace score::shepherd {

namespace {

struct Batch {
  SpawnRequest request;
  std::vector<base::UniqueFd> fds;
};

std::optional<Batch> receive(int socket) {
  auto message = base::receive_with_fds(socket, sizeof(SpawnRequest));
  if (!message || message->bytes.size() != sizeof(SpawnRequest)) return std::nullopt;
  Batch batch{.request = {}, .fds = std::move(message->fds)};
  std::memcpy(&batch.request, message->bytes.data(), sizeof batch.request);
  if (batch.request.magic != kSpawnMagic) return std::nullopt;
  return batch;
}

bool send(int socket, const SpawnReply& reply) {
  return base::send_with_fds(socket, std::as_bytes(std::span(&reply, 1)), {}).has_value();
}

std::optional<Plan> read_plan(const Batch& batch) {
  if (batch.fds.size() != 1 && batch.fds.size() != 3) return std::nullopt;
  auto bytes = base::read_all(batch.fds[0].get(), 2 * base::limits::kMaxFrameBytes);
  if (!bytes) return std::nullopt;
  auto plan = parse_plan(*bytes);
  if (!plan) return std::nullopt;
  return std::move(*plan);
}

SpawnReply fork_batch(const TaskExecutor& starter, const Batch& batch) {
  const auto& request = batch.request;
  SpawnReply reply{.kind = SpawnReply::Kind::Forked, .first = request.first};
  const std::size_t each = starter.descriptors_per_task();
  if (request.count > kTasksPerBatch || batch.fds.size() != request.count * each) {
    reply.kind = SpawnReply::Kind::Failed;
    reply.error = EPROTO;
    return reply;
  }
  for (std::uint32_t i = 0; i < request.count; ++i) {
    const pid_t pid = fork();
    if (pid == 0) starter.run(request.first + i, std::span(batch.fds).subspan(i * each, each));
    if (pid < 0) {
      reply.kind = SpawnReply::Kind::Failed;
      reply.error = errno;
      return reply;
    }
    reply.pids[i] = pid;
    ++reply.count;
  }
  return reply;
}

// Keeps the process id, the children, and the socket to A. Images contain the program, so it is one
// that the user can read and trace, and it has no descriptor of the launcher.
void become_task_parent() {
  const std::string path = base::find_beside("scored-task-parent", {"."});
  std::array<char, 20> name{"scored-task-parent"};
  std::array<char*, 2> argv{name.data(), nullptr};
  std::array<char*, 1> environment{nullptr};
  dup2(STDIN_FILENO, STDERR_FILENO);
  fcntl(kSpawnFd, F_SETFD, 0);
  execve(path.c_str(), argv.data(), environment.data());
}

// Forks the tasks of one plan. Returns the exit status of the process that does it.
int serve_plan(int socket, const Plan& plan) {
  auto starter = TaskExecutor::create(plan);
  if (!starter || !send(socket, {.kind = SpawnReply::Kind::Ready})) return 1;
  // Processes that a task leaves behind are saved with the tasks.
  if (plan.can_checkpoint()) become_subreaper();
  while (auto batch = receive(socket)) {
    const bool is_last = batch->request.kind == SpawnRequest::Kind::ForkLast;
    if (!is_last && batch->request.kind != SpawnRequest::Kind::Fork) return 1;
    if (!send(socket, fork_batch(*starter, *batch))) return 1;
    if (is_last && plan.can_checkpoint()) become_task_parent();
    if (is_last) return 0;
  }
  return 1;
}

// The deputy's end makes its tasks children of A. The deputy reads the socket until then.
bool has_served(pid_t deputy) {
  int status = 0;
  while (waitpid(deputy, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int run_spawner(int socket) {
  // Zombies must stay (see above).
  signal(SIGCHLD, SIG_DFL);
  // B is usually the leader already; its group is the tasks' group.
  if (getpgrp() != getpid()) setpgid(0, 0);
  if (!send(socket, {.kind = SpawnReply::Kind::Hello, .pid = getpid()})) return 1;
  while (true) {
    auto first = receive(socket);
    if (!first || first->request.kind != SpawnRequest::Kind::SendPlan) return 1;
    const auto plan = read_plan(*first);
    if (!plan) return 1;
    const auto server = std::span(first->fds).subspan(1);
    if (!server.empty() && !fork_waiting_server(server)) return 1;
    first->fds.clear();
    if (!plan->can_spawn()) return serve_plan(socket, *plan);
    const pid_t deputy = fork();
    if (deputy == 0) return serve_plan(socket, *plan);
    if (deputy < 0 || !has_served(deputy)) return 1;
  }
}

}  // namespace score::shepherd
