#include "scored/job/pmi/pmi_hub.hpp"

#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
// Replies to at most one read of ours pile up; a read of tiny gets could ask for this much.
constexpr std::size_t kMaxPendingReplies = 4U << 20U;
// A task that ended may have left this many reads behind in its socket.
constexpr int kMaxLastReads = 64;

}  // namespace

PmiHub::PmiHub(EventLoop& loop, PmiJob job, Handlers handlers)
    : loop_(loop), server_(job), handlers_(std::move(handlers)), connections_(job.local_tasks) {}

PmiHub::~PmiHub() {
  for (std::uint32_t task = 0; task < connections_.size(); ++task) close(task);
}

base::Result<base::UniqueFd> PmiHub::connect(std::uint32_t task) {
  auto pair = base::make_socket_pair(SOCK_STREAM);
  if (!pair) return pair.error();
  if (auto set = base::set_nonblocking(pair->first.get(), true); !set) return set.error();
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
  const ssize_t got = read(connection.socket.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    close(task);  // the task's exit decides whether that was in order
    return false;
  }
  carry_out(server_.receive(task, {buffer.data(), static_cast<std::size_t>(got)}));
  return true;
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

void PmiHub::carry_out(const PmiActions& actions) {
  for (const auto& reply : actions.replies) {
    Connection& connection = connections_[reply.task];
    if (connection.out.size() + reply.bytes.size() > kMaxPendingReplies) {
      handlers_.note(reply.task, "PMI connection closed: too many requests without reading");
      close(reply.task);
    } else {
      connection.out += reply.bytes;
    }
  }
  for (const auto& reply : actions.replies) {
    if (!connections_[reply.task].out.empty()) write_out(reply.task);
  }
  for (const auto task : actions.initialised) {
    if (handlers_.initialised) handlers_.initialised(task);
  }
  for (const auto& note : actions.notes) handlers_.note(note.task, note.text);
  if (actions.fence) handlers_.fence(*actions.fence);
  for (const auto& abort : actions.aborts) handlers_.abort(abort);
  for (const auto task : actions.closed) close(task);
}

base::Status PmiHub::fence_done(std::uint64_t sequence, std::string_view key_values) {
  auto actions = server_.fence_done(sequence, key_values);
  if (!actions) return actions.error();
  carry_out(*actions);
  return {};
}

void PmiHub::task_ended(std::uint32_t task, bool failed) {
  for (int reads = 0; reads < kMaxLastReads && read_some(task); ++reads) continue;
  close(task);
  carry_out(server_.task_ended(task, failed));
}

void PmiHub::close(std::uint32_t task) {
  Connection& connection = connections_[task];
  if (!connection.socket) return;
  loop_.remove(connection.socket.get());
  connection.socket.reset();
  connection.out.clear();
}

}  // namespace score::shepherd
