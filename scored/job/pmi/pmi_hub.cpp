#include "scored/job/pmi/pmi_hub.hpp"

#include "scored/job/tasks/silent_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <signal.h>
#include <span>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace score::shepherd {

namespace {

constexpr const char* kChildIsRefused =
    "it has started an MPI program, which is no rank of this job and would wait for ever: start it "
    "with scrun, MPI_Comm_spawn or \"env -u PMI_FD\"";
constexpr std::size_t kReadBytes = 16 * 1024;
// Replies pile up for at most one read; a read full of tiny gets could need this much.
constexpr std::size_t kMaxPendingReplies = 4U << 20U;
// A task that has ended may have left this many reads in its socket.
constexpr int kMaxLastReads = 64;

struct Received {
  ssize_t bytes = -1;
  pid_t sender = 0;  // 0: unknown
};

// Reads as read(2). The kernel never joins bytes of two senders.
Received receive_from(int socket, std::span<char> buffer) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
  iovec piece{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  Received got;
  got.bytes = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* const head = got.bytes > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS) {
    ucred who{};
    std::memcpy(&who, CMSG_DATA(head), sizeof who);
    got.sender = who.pid;
  }
  return got;
}

}  // namespace

PmiHub::PmiHub(EventLoop& loop, std::uint32_t tasks, Handlers handlers)
    : loop_(loop), handlers_(std::move(handlers)), connections_(tasks) {}

PmiHub::~PmiHub() {
  for (std::uint32_t task = 0; task < connections_.size(); ++task) close(task);
}

void PmiHub::add_world(World world, const std::vector<std::uint32_t>& members, PmiJob job) {
  worlds_.insert_or_assign(world, Served{PmiServer(std::move(job)), members});
  for (std::uint32_t index = 0; index < members.size(); ++index) {
    connections_[members[index]].world = world;
    connections_[members[index]].index = index;
  }
}

PmiServer& PmiHub::server_of(std::uint32_t task) {
  return worlds_.at(*connections_[task].world).server;
}

base::Result<base::UniqueFd> PmiHub::connect(std::uint32_t task) {
  auto pair = base::make_socket_pair(SOCK_STREAM);
  if (!pair) return pair.error();
  if (auto set = base::set_nonblocking(pair->first.get(), true); !set) return set.error();
  const int names_sender = 1;
  setsockopt(pair->first.get(), SOL_SOCKET, SO_PASSCRED, &names_sender, sizeof names_sender);
  auto watched = loop_.add(pair->first.get(), EPOLLIN,
                           [this, task](std::uint32_t events) { on_ready(task, events); });
  if (!watched) return watched.error();
  connections_[task].socket = std::move(pair->first);
  return std::move(pair->second);
}

void PmiHub::on_ready(std::uint32_t task, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) write_out(task);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_some(task);
}

bool PmiHub::read_some(std::uint32_t task) {
  Connection& connection = connections_[task];
  if (!connection.socket) return false;
  std::array<char, kReadBytes> buffer;
  const auto [got, sender] = receive_from(connection.socket.get(), buffer);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    close(task);  // the task's exit code shows whether that was in order
    return false;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
  if (is_of_another(task, sender)) {
    refuse(task, bytes);
    return true;
  }
  if (!server_of(task).has_joined(connection.index)) connection.owner = sender;
  carry_out(*connection.world, server_of(task).receive(connection.index, bytes));
  return true;
}

bool PmiHub::is_of_another(std::uint32_t task, pid_t sender) {
  const Connection& connection = connections_[task];
  const bool may_be = connection.owner != 0 && sender != 0 && sender != connection.owner;
  return may_be && server_of(task).has_joined(connection.index) && kill(connection.owner, 0) == 0;
}

// The process cannot be answered: MPICH 4 waits for ever after a refused init. So the job ends.
void PmiHub::refuse(std::uint32_t task, std::string_view bytes) {
  const bool is_init = bytes.starts_with("cmd=init");
  if (is_init && !std::exchange(connections_[task].has_refused, true))
    handlers_.abort({task, 1, kChildIsRefused});
}

void PmiHub::write_out(std::uint32_t task) {
  Connection& connection = connections_[task];
  if (!connection.socket) return;
  std::size_t written = 0;
  while (written < connection.out.size()) {
    const ssize_t put = ::send(connection.socket.get(), connection.out.data() + written,
                               connection.out.size() - written, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno != EAGAIN) return close(task);
    if (put < 0) break;
    written += static_cast<std::size_t>(put);
  }
  connection.out.erase(0, written);
  loop_.change(connection.socket.get(), connection.out.empty() ? EPOLLIN : EPOLLOUT);
}

void PmiHub::send_replies(const std::vector<PmiActions::Reply>& replies) {
  for (const auto& reply : replies) {
    Connection& connection = connections_[reply.task];
    if (connection.out.size() + reply.bytes.size() > kMaxPendingReplies) {
      handlers_.note(reply.task, "PMI connection closed: too many requests without reading");
      close(reply.task);
    } else {
      connection.out += reply.bytes;
    }
  }
  for (const auto& reply : replies) {
    if (!connections_[reply.task].out.empty()) write_out(reply.task);
  }
}

// The server numbers the tasks of its world; from here on the numbers are tasks of the node.
void PmiHub::carry_out(World world, PmiActions actions) {
  const std::vector<std::uint32_t> members = worlds_.at(world).members;
  for (auto& reply : actions.replies) reply.task = members[reply.task];
  send_replies(actions.replies);
  for (const auto task : actions.initialised) {
    if (handlers_.initialised) handlers_.initialised(members[task]);
  }
  for (const auto& note : actions.notes) handlers_.note(members[note.task], note.text);
  if (actions.fence) handlers_.fence(world, *actions.fence);
  for (auto& abort : actions.aborts) {
    abort.task = members[abort.task];
    handlers_.abort(abort);
  }
  for (auto& spawn : actions.spawns) {
    spawn.task = members[spawn.task];
    if (handlers_.spawn) handlers_.spawn(std::move(spawn));
  }
  for (auto& name : actions.names) {
    name.task = members[name.task];
    if (handlers_.name) handlers_.name(std::move(name));
  }
  for (const auto task : actions.closed) close(members[task]);
}

base::Status PmiHub::fence_done(World world, std::uint64_t sequence, std::string_view key_values) {
  const auto served = worlds_.find(world);
  if (served == worlds_.end()) return {};
  auto actions = served->second.server.fence_done(sequence, key_values);
  if (!actions) return actions.error();
  carry_out(world, std::move(*actions));
  return {};
}

bool PmiHub::is_quiet() const {
  const auto is_read = [](const Connection& connection) {
    return connection.out.empty() && (!connection.socket || is_silent(connection.socket.get()));
  };
  const auto waits_not = [](const auto& world) { return world.second.server.is_quiet(); };
  return std::ranges::all_of(connections_, is_read) && std::ranges::all_of(worlds_, waits_not);
}

std::string PmiHub::saved() const {
  const auto world = worlds_.find(0);
  return world == worlds_.end() ? "" : world->second.server.saved();
}

base::Status PmiHub::restore(std::string_view text) {
  const auto world = worlds_.find(0);
  if (world != worlds_.end()) return world->second.server.restore(text);
  return base::fail(base::Errc::WrongState, "there is no PMI server");
}

void PmiHub::spawn_done(std::uint32_t task, bool is_good) {
  const auto& connection = connections_[task];
  carry_out(*connection.world, server_of(task).spawn_done(connection.index, is_good));
}

void PmiHub::name_done(std::uint32_t task, bool is_good, std::string_view port) {
  const auto& connection = connections_[task];
  carry_out(*connection.world, server_of(task).name_done(connection.index, is_good, port));
}

void PmiHub::task_ended(std::uint32_t task, bool failed) {
  for (int reads = 0; reads < kMaxLastReads && read_some(task); ++reads) continue;
  close(task);
  const auto& connection = connections_[task];
  if (!connection.world) return;  // it was never started
  carry_out(*connection.world, server_of(task).task_ended(connection.index, failed));
}

void PmiHub::close(std::uint32_t task) {
  Connection& connection = connections_[task];
  if (!connection.socket) return;
  loop_.remove(connection.socket.get());
  connection.socket.reset();
  connection.out.clear();
}

}  // namespace score::shepherd
