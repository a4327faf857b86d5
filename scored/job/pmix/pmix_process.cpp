// This module is tested by pmix_flow_test.cpp.
#include "scored/job/pmix/pmix_process.hpp"

#include "base/errc.hpp"
#include "base/os/spawn.hpp"

#include <array>
#include <cerrno>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

constexpr std::size_t kReadBytes = 64UL * 1024;
constexpr int kMaxLastReads = 64;

std::string program_path() {
  return (base::own_directory() / "scored-pmix").string();
}

}  // namespace

PmixProcess::PmixProcess(EventLoop& loop, Handlers handlers)
    : loop_(loop), handlers_(std::move(handlers)) {}

PmixProcess::~PmixProcess() {
  if (socket_) loop_.remove(socket_.get());
  clean_up();
}

void PmixProcess::clean_up() {
  directory_.remove();
}

base::Status PmixProcess::find() {
  if (access(program_path().c_str(), X_OK) == 0) return {};
  return base::fail(base::Errc::NotFound,
                    "no PMIx on this node: scored-pmix is not installed: install the package "
                    "scored-node, or build with libpmix-dev");
}

base::Result<std::uint16_t> PmixProcess::listen() {
  base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!listener || bind(listener.get(), generic, length) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0 ||
      getsockname(listener.get(), generic, &length) != 0) {
    return base::fail(base::errno_code(errno), "socket of the PMIx server");
  }
  descriptors_.push_back(std::move(listener));
  return ntohs(address.sin_port);
}

base::Result<std::uint16_t> PmixProcess::offer(std::string plan) {
  auto directory = base::PmixDirectory::make();
  if (!directory) return directory.error();
  directory_ = std::move(*directory);
  auto pair = base::make_socket_pair(SOCK_STREAM);
  if (!pair) return pair.error();
  descriptors_.push_back(std::move(pair->second));
  const auto port = listen();
  if (!port) return port;
  if (auto attached = attach(std::move(pair->first)); !attached) return attached.error();
  offered_plan_ = std::move(plan);
  return port;
}

// If the server cannot be started, the process that waits in its place is kept: a client whose
// connection ended would print its own error, and might continue without its peers.
void PmixProcess::begin() {
  if (!is_offered()) return;
  wire::PmixStart start;
  start.set_plan(std::exchange(offered_plan_, {}));
  start.set_directory(directory_.path());
  const auto found = find();
  if (found) return send_frame(proto::frame_type<wire::PmixStart>(), start.SerializeAsString());
  loop_.remove(socket_.get());
  silent_socket_ = std::move(socket_);
  handlers_.failed(found.error().context());
}

base::Status PmixProcess::attach(base::UniqueFd socket) {
  if (auto set = base::set_nonblocking(socket.get(), true); !set) return set;
  socket_ = std::move(socket);
  return loop_.add(socket_.get(), EPOLLIN, [this](std::uint32_t at) { on_ready(at); });
}

void PmixProcess::on_ready(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) write_queue();
  if (socket_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read_some();
}

bool PmixProcess::read_some() {
  if (!socket_) return false;
  std::array<char, kReadBytes> buffer;
  const ssize_t got = read(socket_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    const bool has_run = is_running();
    close();
    if (has_run) handlers_.ended();
    return false;
  }
  reader_.feed({buffer.data(), static_cast<std::size_t>(got)});
  while (socket_) {
    auto frame = reader_.next(proto::Role::PmixServer);
    if (frame && !*frame) break;
    if (frame) {
      on_frame(**frame);
    } else {
      close();
      handlers_.failed(frame.error().message());
    }
  }
  return true;
}

void PmixProcess::on_frame(const proto::InFrame& frame) {
  using proto::FrameType;
  if (frame.type == FrameType::PmixWanted) {
    begin();
  } else if (frame.type == FrameType::PmixFailed) {
    wire::PmixFailed failed;
    close();
    handlers_.failed(failed.ParseFromString(frame.payload) ? failed.reason() : "no reason");
  } else if (frame.type == FrameType::PmixFence) {
    wire::PmixFence fence;
    if (!fence.ParseFromString(frame.payload)) return;
    fence_ = PmiActions::Fence{fence.sequence(), fence.data()};
    handlers_.fence(*fence_);
  } else if (frame.type == FrameType::JobRelay) {
    wire::JobRelay message;
    if (message.ParseFromString(frame.payload)) handlers_.relay(message);
  } else if (frame.type == FrameType::PmixAbort) {
    wire::PmixAbort abort;
    if (abort.ParseFromString(frame.payload)) handlers_.abort(abort);
  } else if (frame.type == FrameType::PmixSpawn) {
    wire::PmixSpawn spawn;
    if (spawn.ParseFromString(frame.payload)) handlers_.spawn(spawn);
  } else if (frame.type == FrameType::PmixWorldReady) {
    wire::PmixWorldReady ready;
    if (ready.ParseFromString(frame.payload)) handlers_.world_ready(ready.world(), ready.reason());
  } else if (frame.type == FrameType::PmixTaskState) {
    wire::PmixTaskState state;
    if (!state.ParseFromString(frame.payload)) return;
    if (!state.is_initialised()) {
      initialised_.erase(state.task());
    } else if (initialised_.insert(state.task()).second) {
      handlers_.initialised(state.task());
    } else {
      handlers_.connected_twice(state.task());
    }
  }
}

void PmixProcess::fence_done(std::uint64_t sequence, std::string_view data) {
  if (!fence_ || fence_->sequence != sequence) return;  // a repeated message
  fence_.reset();
  wire::PmixFenceDone done;
  done.set_sequence(sequence);
  done.set_data(std::string(data));
  send_frame(proto::frame_type<wire::PmixFenceDone>(), done.SerializeAsString());
}

void PmixProcess::relay(std::string_view bytes) {
  send_frame(proto::FrameType::JobRelay, bytes);
}

bool PmixProcess::add_world(std::string_view plan) {
  begin();
  wire::PmixWorld world;
  world.set_plan(std::string(plan));
  send_frame(proto::frame_type<wire::PmixWorld>(), world.SerializeAsString());
  return is_running();
}

void PmixProcess::spawn_done(std::uint64_t token, std::uint32_t world) {
  wire::PmixSpawned spawned;
  spawned.set_token(token);
  spawned.set_world(world);
  send_frame(proto::frame_type<wire::PmixSpawned>(), spawned.SerializeAsString());
}

bool PmixProcess::was_initialised(std::uint32_t task) {
  // This handles the messages that the server sent before the task ended.
  for (int reads = 0; reads < kMaxLastReads && read_some(); ++reads) continue;
  return initialised_.contains(task);
}

void PmixProcess::send_frame(proto::FrameType type, std::string_view payload) {
  if (!socket_) return;
  proto::append_frame(out_, type, payload);
  write_queue();
}

void PmixProcess::write_queue() {
  std::size_t written = 0;
  while (written < out_.size()) {
    const ssize_t put = ::send(socket_.get(), out_.data() + written, out_.size() - written,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) break;  // full: retried later; broken: read_some() detects it
    written += static_cast<std::size_t>(put);
  }
  out_.erase(0, written);
  loop_.change(socket_.get(), out_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void PmixProcess::close() {
  loop_.remove(socket_.get());
  socket_.reset();
}

}  // namespace score::shepherd
