// One framed connection: Unix stream socket, or TCP under TLS. Coroutine reads, queued writes.
// Thread: the io_context's only one. The owner keeps it in a shared_ptr until both loops ended.
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
  std::size_t write_queue_bytes = 64U << 20U;  // more queued than this: the connection is closed
  base::Duration header_deadline{};            // first frame must be complete within this; 0: none
  base::Duration frame_deadline{};             // from header to last byte of a frame; 0: none
  base::Duration write_deadline{};             // the peer takes not one byte for this long; 0: none
  std::size_t descriptors = 0;                 // that came and wait for take_descriptors()
};

class Connection {
 public:
  virtual ~Connection() = default;
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Next frame. Before it is read its header is checked: known type, `role` may send it, length
  // within the type's limit; else an error and the connection is of no more use. End of file, or
  // close() by anybody: base::Errc::Closed; a deadline: Timeout; see proto/frames/errc.hpp for the
  // rest. One read at a time.
  virtual boost::asio::awaitable<base::Result<InFrame>> read(Role sender) = 0;
  // Queues; never blocks. False: closed, the peer reads no more, the payload is beyond the type's
  // limit (nothing is sent), or the queue limit was passed (then it closes itself). A frame is
  // always taken when nothing is queued.
  // Frames queued within one turn of the loop leave in one write.
  virtual bool send(FrameType type, std::string_view payload) = 0;

  // As send(), with at most base::kMaxPassedFds descriptors, over a Unix socket; false elsewhere.
  virtual bool send_descriptors(FrameType, std::string_view, std::vector<base::UniqueFd>) {
    return false;
  }

  // The descriptors that came with the frames read so far, oldest first: at most `count`. A peer
  // that sends more than ConnectionLimits::descriptors before they are taken is an error of read().
  virtual std::vector<base::UniqueFd> take_descriptors(std::size_t) { return {}; }

  // The same bytes to many connections without copying them for each.
  virtual bool send_shared(std::shared_ptr<const std::string> frame_bytes) = 0;
  // Waits until less than `bytes` are queued, or it is closed.
  virtual boost::asio::awaitable<void> drained(std::size_t bytes) = 0;
  virtual std::size_t queued_bytes() const = 0;

  // Over TCP: what was sent has not been acknowledged by the peer's host, and nothing has come from
  // there for this time. 0 if it has been, or on another socket.
  virtual base::Duration unanswered_for() const { return base::Duration(0); }

  // What it holds from now on counts there: frames on their way in (one that has no room is not
  // read on; its deadline goes on), and queued bytes (send() closes it where there is no room).
  virtual void charge_to(std::shared_ptr<base::ByteBudget>, std::shared_ptr<base::ByteBudget>) {}

  // Its peer may stop for any time, as a terminal does: no write deadline.
  virtual void be_patient() {}

  // At once; queued bytes that the peer's buffer does not take at once are lost (drained(1) first
  // waits for them). Idempotent.
  virtual void close() = 0;
  virtual bool is_open() const = 0;
  virtual const std::string& peer() const = 0;  // for logs: "uid 1000 pid 77", "node03 127.0.0.1"
};

// Frame of a generated message: `send(c, wire::Submit)`; the type number comes from its annotation.
template <class Message>
bool send(Connection& connection, const Message& message) {
  return connection.send(frame_type<Message>(), message.SerializeAsString());
}

// Header and payload as one block, for send_shared.
std::shared_ptr<const std::string> encode_frame(FrameType type, std::string_view payload);

template <class Message>
std::shared_ptr<const std::string> encode_frame(const Message& message) {
  return encode_frame(frame_type<Message>(), message.SerializeAsString());
}

}  // namespace score::proto
