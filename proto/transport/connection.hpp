// A Connection carries frames over a Unix stream socket, or over TCP under TLS. Reads are
// coroutines, writes are queued. It is used only on the thread of the io_context. The owner keeps
// it in a shared_ptr until both loops have ended.
#pragma once

#include "base/async/asio.hpp"
#include "base/async/byte_budget.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "proto/frames/frame_reader.hpp"
#include "proto/frames/frames.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace score::proto {

struct ConnectionLimits {
  std::size_t write_queue_bytes = 64U << 20U;  // with more queued, the connection is closed
  base::Duration header_deadline{};            // first frame must be complete within this; 0: none
  base::Duration frame_deadline{};             // from header to last byte of a frame; 0: none
  base::Duration write_deadline{};             // for a peer that takes no byte; 0: none
  std::size_t descriptors = 0;                 // limit of those that wait for take_descriptors()
};

class Connection {
 public:
  virtual ~Connection() = default;
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Returns the next frame. Its header is checked first: the type is known, `sender` may send it,
  // and the length is within the type's limit; after a fault the connection is unusable. Errors:
  // base::Errc::Closed for end of file and after close(), Timeout for a deadline;
  // proto/frames/errc.hpp has the rest. Only one read may be in progress.
  virtual boost::asio::awaitable<base::Result<InFrame>> read(Role sender) = 0;
  // Queues a frame and never blocks. Returns false if the connection is closed, the peer reads no
  // more, the payload is beyond the type's limit (nothing is sent), or the queue limit was exceeded
  // (the connection then closes itself). A frame is always accepted when nothing is queued. Frames
  // queued within one turn of the loop are sent in one write.
  virtual bool send(FrameType type, std::string_view payload) = 0;

  // Works like send(), with at most base::kMaxPassedFds descriptors. It needs a Unix socket and
  // returns false elsewhere.
  virtual bool send_descriptors(FrameType, std::string_view, std::vector<base::UniqueFd>) {
    return false;
  }

  // Returns the descriptors that came with the frames read so far, oldest first, at most `count`.
  // read() fails if a peer sends more than ConnectionLimits::descriptors before they are taken.
  virtual std::vector<base::UniqueFd> take_descriptors(std::size_t) { return {}; }

  // Queues a frame that many connections share, without copying it for each.
  virtual bool send_shared(std::shared_ptr<const std::string> frame_bytes) = 0;
  // Waits until less than `bytes` are queued, or the connection is closed.
  virtual boost::asio::awaitable<void> drained(std::size_t bytes) = 0;
  virtual std::size_t queued_bytes() const = 0;

  // Returns how long the peer's host has neither acknowledged the bytes sent over TCP nor sent
  // anything. It is 0 if everything was acknowledged, and on other sockets.
  virtual base::Duration unanswered_for() const { return base::Duration(0); }

  // Charges the memory of this connection to the budgets from now on. Incoming frames count to the
  // first: a frame without room is not read further, while its deadline continues. Queued bytes
  // count to the second: send() closes the connection if there is no room.
  virtual void charge_to(std::shared_ptr<base::ByteBudget>, std::shared_ptr<base::ByteBudget>) {}

  // Turns the write deadline off, because the peer may stop reading for any time, as a terminal
  // does.
  virtual void disable_write_deadline() {}

  // Closes at once. Queued bytes that the peer's buffer does not accept are lost; drained(1) waits
  // for them first. It is idempotent.
  virtual void close() = 0;
  virtual bool is_open() const = 0;
  virtual const std::string& peer() const = 0;  // for logs: "uid 1000 pid 77", "node03 127.0.0.1"
};

// Sends the frame of a generated message, as in `send(c, wire::Submit)`. The type number comes from
// its annotation.
template <class Message>
bool send(Connection& connection, const Message& message) {
  return connection.send(frame_type<Message>(), message.SerializeAsString());
}

// Encodes header and payload as one block, for send_shared.
std::shared_ptr<const std::string> encode_frame(FrameType type, std::string_view payload);

template <class Message>
std::shared_ptr<const std::string> encode_frame(const Message& message) {
  return encode_frame(frame_type<Message>(), message.SerializeAsString());
}

}  // namespace score::proto
