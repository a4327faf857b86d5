#include "scored/job/scratch/helper_spawner.hpp"

#include "base/os/spawn.hpp"
#include "base/text.hpp"
#include "scored/job/scratch/helper_wire.hpp"
#include "scored/job/scratch/program.hpp"
#include "scored/job/tasks/children.hpp"

#include <cerrno>
#include <cstring>
#include <optional>
#include <signal.h>
#include <span>
#include <unistd.h>

namespace score::shepherd {

namespace {

constexpr std::size_t kMostArgumentBytes = 64UL * 1024;

struct HelperOrder {
  HelperRequest request;
  std::vector<base::UniqueFd> fds;
};

std::optional<HelperOrder> next_order(int socket) {
  auto message = base::receive_with_fds(socket, sizeof(HelperRequest));
  if (!message || message->bytes.size() != sizeof(HelperRequest)) return std::nullopt;
  HelperOrder order{.request = {}, .fds = std::move(message->fds)};
  std::memcpy(&order.request, message->bytes.data(), sizeof order.request);
  const std::size_t expected = order.request.has_extra != 0 ? 4 : 3;
  if (order.request.magic != kHelperMagic || order.fds.size() != expected) return std::nullopt;
  return order;
}

std::vector<std::string> words_of(const base::UniqueFd& file) {
  std::vector<std::string> words;
  auto text = base::read_all(file.get(), kMostArgumentBytes);
  if (!text || !text->ends_with('\0')) return words;
  text->pop_back();
  for (const auto word : base::split(*text, '\0')) words.emplace_back(word);
  return words;
}

base::Result<base::SpawnedProcess> start_helper(const HelperOrder& order) {
  base::SpawnSpec spec;
  spec.argv = words_of(order.fds[0]);
  if (spec.argv.empty()) return base::fail(base::errno_code(EINVAL), "no arguments");
  spec.path = Program::find(spec.argv[0]);
  spec.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
  spec.fds = {{order.fds[1].get(), STDERR_FILENO}};
  if (order.request.has_extra != 0) spec.fds.emplace_back(order.fds[2].get(), Program::kExtraFd);
  spec.fds.emplace_back(order.fds.back().get(), Program::kReadyFd);
  spec.directory.assign(1, '/');  // g++ 12 gives a false warning for = "/"
  spec.new_session = true;
  spec.die_with_parent = true;
  return base::spawn(spec);
}

bool answer(int socket, const base::Result<base::SpawnedProcess>& started) {
  HelperReply reply;
  std::vector<int> fds;
  if (started) {
    reply.pid = started->pid;
    fds.push_back(started->pidfd.get());
  } else {
    const int error = started.error().code().value();
    reply.error = error != 0 ? error : EIO;
  }
  return base::send_with_fds(socket, std::as_bytes(std::span(&reply, 1)), fds).has_value();
}

}  // namespace

int run_helpers(int socket) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  while (const auto order = next_order(socket)) {
    reap_children();
    if (!answer(socket, start_helper(*order))) return 1;
  }
  return 0;
}

}  // namespace score::shepherd
