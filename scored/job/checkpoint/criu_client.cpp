// This module is tested by tests/integration/run/test_checkpoint.py.
#include "scored/job/checkpoint/criu_client.hpp"

#include "base/errc.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace score::shepherd {

using checkpoint::CriuReply;
using checkpoint::CriuRequest;

CriuClient::CriuClient(EventLoop& loop, base::UniqueFd socket)
    : loop_(loop), socket_(std::move(socket)) {
  if (!socket_) return;
  auto ready = base::set_nonblocking(socket_.get(), true);
  if (ready) ready = loop_.add(socket_.get(), EPOLLIN, [this](std::uint32_t) { on_reply(); });
  if (!ready) socket_.reset();
}

void CriuClient::close() {
  if (socket_) loop_.remove(socket_.get());
  socket_.reset();
}

void CriuClient::save(int directory, pid_t root, std::span<const Stream> streams, Done done) {
  CriuRequest request;
  request.kind = CriuRequest::Kind::Save;
  request.process = root;
  order(request, directory, streams, std::move(done));
}

void CriuClient::restore(int directory, pid_t last, std::span<const Stream> streams, Done done) {
  CriuRequest request;
  request.kind = CriuRequest::Kind::Restore;
  request.process = last;
  order(request, directory, streams, std::move(done));
}

void CriuClient::order(CriuRequest request, int directory, std::span<const Stream> streams,
                       Done done) {
  if (done_) return done(base::fail(base::Errc::Busy, "criu is still at work"));
  for (const Stream& stream : streams) {
    CriuRequest named;
    named.kind = CriuRequest::Kind::Stream;
    named.what = stream.what;
    named.inode = stream.inode;
    if (auto sent = send(named, stream.fd); !sent) return done(sent);
  }
  if (auto sent = send(request, directory); !sent) return done(sent);
  done_ = std::move(done);
}

base::Status CriuClient::send(const CriuRequest& request, int fd) const {
  if (!socket_) return base::fail(base::Errc::Closed, "scored-checkpoint has ended");
  const std::array<int, 1> fds{fd};
  return base::send_with_fds(socket_.get(), std::as_bytes(std::span(&request, 1)),
                             std::span(fds).first(fd >= 0 ? 1 : 0));
}

void CriuClient::on_reply() {
  const auto message = base::receive_with_fds(socket_.get(), sizeof(CriuReply));
  if (!message && message.error().code() == std::errc::resource_unavailable_try_again) return;
  CriuReply reply;
  const bool is_whole = message && message->bytes.size() == sizeof reply;
  if (is_whole) std::memcpy(&reply, message->bytes.data(), sizeof reply);
  base::Status result;
  if (!is_whole || reply.magic != checkpoint::kMagic) {
    close();
    result = base::fail(base::Errc::Closed, "scored-checkpoint has ended");
  } else if (reply.error != 0) {
    result = base::fail(base::errno_code(reply.error), "scored-checkpoint refuses");
  } else if (reply.status != 0) {
    result = base::fail(base::Errc::Unsupported, "criu ended with exit code {}", reply.status);
  }
  if (const auto done = std::exchange(done_, nullptr)) done(result);
}

}  // namespace score::shepherd
