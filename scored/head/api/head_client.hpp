#pragma once
// HeadClient is a connection to this head's own commands, for requests that arrive over HTTP. The
// head serves it as it serves a command of the user: same permissions, shares and audit.

#include "base/async/asio.hpp"
#include "base/result.hpp"
#include "proto/client.pb.h"
#include "proto/frames/parse.hpp"
#include "proto/transport/connection.hpp"

#include <functional>
#include <memory>

namespace score::head {

// Serves the connection as one of a command of this user.
using AdmitClient = std::function<void(UserId, std::shared_ptr<proto::Connection>)>;

class HeadClient {
 public:
  // Connects and says hello. Errors: errno, Closed, Busy (the user has too many connections).
  static asio::awaitable<Result<HeadClient>> open(const AdmitClient& admit, UserId user);

  HeadClient(HeadClient&&) noexcept = default;
  HeadClient& operator=(HeadClient&&) noexcept = default;
  ~HeadClient();

  template <class Message>
  void send(const Message& message) {
    proto::send(*connection_, message);
  }

  // Returns the next frame. Errors: those of the connection, and the head's for a Failed frame.
  asio::awaitable<Result<proto::InFrame>> next();

  // Sends the request and returns its reply. Errors: the head's.
  template <class Reply, class Message>
  asio::awaitable<Result<Reply>> ask(const Message& message) {
    send(message);
    auto frame = co_await next();
    if (!frame) co_return frame.error();
    co_return proto::parse<Reply>(*frame);
  }

 private:
  explicit HeadClient(std::shared_ptr<proto::Connection> connection)
      : connection_(std::move(connection)) {}

  std::shared_ptr<proto::Connection> connection_;
};

}  // namespace score::head
