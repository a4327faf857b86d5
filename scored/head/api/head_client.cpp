#include "scored/head/api/head_client.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "proto/convert/convert.hpp"
#include "proto/frames/hello.hpp"
#include "proto/transport/unix_connection.hpp"
#include "scored/head/config/version.hpp"

#include <cerrno>
#include <sys/socket.h>
#include <utility>

namespace score::head {
namespace {

proto::ConnectionLimits client_limits() {
  proto::ConnectionLimits limits;
  limits.write_queue_bytes = limits::kMaxClientQueueBytes;
  return limits;
}

}  // namespace

asio::awaitable<Result<HeadClient>> HeadClient::open(const AdmitClient& admit, UserId user) {
  const auto executor = co_await asio::this_coro::executor;
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    co_return fail(errno_code(errno), "cannot connect to the head");
  }
  UniqueFd theirs(ends[0]);
  UniqueFd ours(ends[1]);
  auto served = proto::adopt_unix(executor, std::move(theirs), client_limits());
  auto asking = proto::adopt_unix(executor, std::move(ours), client_limits());
  if (!served) co_return served.error();
  if (!asking) co_return asking.error();
  admit(user, std::move(served->connection));
  HeadClient client(std::move(asking->connection));
  wire::ClientHello hello;
  hello.set_lowest_version(proto::spoken_versions().lowest);
  hello.set_highest_version(proto::spoken_versions().highest);
  hello.set_program(std::string("api ") + kVersion);
  auto greeted = co_await client.ask<wire::ServerHello>(hello);
  if (!greeted && greeted.error().is(Errc::Closed)) {
    co_return fail(Errc::Busy, "too many connections of this user; try again");
  }
  if (!greeted) co_return greeted.error();
  co_return client;
}

HeadClient::~HeadClient() {
  if (connection_) connection_->close();
}

asio::awaitable<Result<proto::InFrame>> HeadClient::next() {
  auto frame = co_await connection_->read(proto::Role::Head);
  if (!frame || frame->type != proto::FrameType::Failed) co_return frame;
  const auto failed = proto::parse<wire::Failed>(*frame);
  if (!failed) co_return failed.error();
  co_return proto::from_wire(failed->error());
}

}  // namespace score::head
