#include "scored/job/tasks/spawn_client.hpp"

#include "base/errc.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

base::Result<base::UniqueFd> make_memfd(std::string_view bytes) {
  base::UniqueFd file(memfd_create("plan", MFD_CLOEXEC));
  if (!file) return base::fail(base::errno_code(errno), "memfd_create");
  if (auto written = base::write_all(file.get(), bytes); !written) return written.error();
  if (lseek(file.get(), 0, SEEK_SET) != 0) return base::fail(base::errno_code(errno), "lseek");
  return file;
}

base::Status send_request(int socket, const SpawnRequest& request, std::span<const int> fds) {
  return base::send_with_fds(socket, std::as_bytes(std::span(&request, 1)), fds);
}

}  // namespace

SpawnClient::SpawnClient(EventLoop& loop, base::UniqueFd socket)
    : loop_(loop), socket_(std::move(socket)) {}

base::Status SpawnClient::start(Handlers handlers) {
  handlers_ = std::move(handlers);
  if (!socket_) return {};
  if (auto set = base::set_nonblocking(socket_.get(), true); !set) return set;
  return loop_.add(socket_.get(), EPOLLIN, [this](std::uint32_t) { on_ready(); });
}

base::Status SpawnClient::prepare(std::string_view plan_bytes, bool stays,
                                  std::vector<base::UniqueFd> server) {
  if (!socket_) return base::fail(base::Errc::Closed, "spawner");
  auto plan = make_memfd(plan_bytes);
  if (!plan) return plan.error();
  plan_ = std::move(server);
  plan_.insert(plan_.begin(), std::move(*plan));
  stays_ = stays;
  has_begun_ = is_last_ = ready_ = false;
  if (greeted_) send_plan();
  return {};
}

void SpawnClient::begin(std::uint32_t first, std::uint32_t count) {
  if (!socket_) return handlers_.failed(base::fail(base::Errc::Closed, "spawner"));
  has_begun_ = true;
  forked_ = asked_ = first;
  end_ = first + count;
  if (ready_) request_next();
}

base::Status SpawnClient::adopt(base::UniqueFd socket, std::span<const pid_t> tasks) {
  close();
  socket_ = std::move(socket);
  has_parent_ = is_last_ = true;
  if (auto set = base::set_nonblocking(socket_.get(), true); !set) return set;
  for (const pid_t task : tasks) handlers_.forked(forked_++, task);
  end_ = asked_ = forked_;
  auto added = loop_.add(socket_.get(), EPOLLIN, [this](std::uint32_t) { on_ready(); });
  if (added) handlers_.all_forked();
  return added;
}

void SpawnClient::close() {
  if (!socket_) return;
  loop_.remove(socket_.get());
  socket_.reset();
}

void SpawnClient::give_up(const base::Error& why) {
  close();
  handlers_.failed(why);
}

void SpawnClient::on_ready() {
  auto message = base::receive_with_fds(socket_.get(), sizeof(SpawnReply));
  if (!message && message.error().code() == std::errc::resource_unavailable_try_again) return;
  SpawnReply reply;
  const bool has_ended = message && message->bytes.empty() && has_parent_ && is_last_;
  if (has_ended && forked_ == end_) return close();
  if (!message || message->bytes.size() != sizeof reply) {
    return give_up(base::fail(base::Errc::Closed, "spawner"));
  }
  std::memcpy(&reply, message->bytes.data(), sizeof reply);
  if (reply.magic != kSpawnMagic) return give_up(base::fail(base::Errc::Malformed, "spawner"));
  on_reply(reply);
}

void SpawnClient::on_reply(const SpawnReply& reply) {
  switch (reply.kind) {
    case SpawnReply::Kind::Hello:
      greeted_ = true;
      handlers_.hello(reply.pid);
      if (!plan_.empty()) send_plan();
      return;
    case SpawnReply::Kind::Ready:
      ready_ = true;
      if (has_begun_) request_next();
      return;
    case SpawnReply::Kind::Forked:
      take_pids(reply);
      if (socket_) request_next();  // unless a handler closed the client
      return;
    case SpawnReply::Kind::Ended:
      if (has_parent_) handlers_.ended(reply);
      return;
    case SpawnReply::Kind::Failed:
      take_pids(reply);
      if (socket_) give_up(base::fail(base::errno_code(reply.error), "fork"));
      return;
  }
  give_up(base::fail(base::Errc::Malformed, "spawner"));
}

void SpawnClient::send_plan() {
  std::vector<int> fds;
  for (const auto& fd : plan_) fds.push_back(fd.get());
  auto sent = send_request(socket_.get(), {.kind = SpawnRequest::Kind::SendPlan}, fds);
  plan_.clear();
  if (!sent) give_up(sent.error());
}

void SpawnClient::take_pids(const SpawnReply& reply) {
  const auto count = std::min<std::uint32_t>({reply.count, kTasksPerBatch, asked_ - forked_});
  for (std::uint32_t i = 0; i < count && socket_; ++i) handlers_.forked(forked_++, reply.pids[i]);
}

void SpawnClient::request_next() {
  if (forked_ == end_ && is_last_) {
    if (!stays_ && !has_parent_) close();  // the spawner exits by itself
    return handlers_.all_forked();
  }
  const auto count = std::min<std::uint32_t>(kTasksPerBatch, end_ - forked_);
  if (auto sent = send_batch(count); !sent) give_up(sent.error());
}

base::Status SpawnClient::send_batch(std::uint32_t count) {
  std::vector<base::UniqueFd> open;
  std::vector<int> fds;
  for (std::uint32_t task = forked_; task < forked_ + count; ++task) {
    auto descriptors = handlers_.open_task(task);
    if (!descriptors) return descriptors.error();
    for (auto& fd : *descriptors) {
      fds.push_back(fd.get());
      open.push_back(std::move(fd));
    }
  }
  asked_ = forked_ + count;
  is_last_ = asked_ == end_;
  const SpawnRequest request{
      .kind = is_last_ ? SpawnRequest::Kind::ForkLast : SpawnRequest::Kind::Fork,
      .first = forked_,
      .count = count};
  return send_request(socket_.get(), request, fds);
}

}  // namespace score::shepherd
