// StreamConnection is the Connection over a byte stream: waiting, framing, deadlines and the write
// queue. It is the same for a Unix socket and for TLS.
#pragma once

#include "proto/transport/byte_stream.hpp"
#include "proto/transport/connection.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace score::proto {

class StreamConnection final : public Connection,
                               public std::enable_shared_from_this<StreamConnection> {
 public:
  // Takes over the descriptor, which must be non-blocking; `stream` moves bytes on the same one.
  StreamConnection(boost::asio::posix::stream_descriptor descriptor,
                   std::unique_ptr<ByteStream> stream, std::string peer, ConnectionLimits limits);
  ~StreamConnection() override;

  // Does the handshake of the stream, if it has one. Call it once, before anything else; `deadline`
  // > 0. On an error the connection is closed.
  boost::asio::awaitable<base::Result<void>> handshake(base::Duration deadline);

  void set_peer(std::string peer) { peer_ = std::move(peer); }

  ByteStream& stream() { return *stream_; }

  boost::asio::awaitable<base::Result<InFrame>> read(Role sender) override;
  bool send(FrameType type, std::string_view payload) override;
  bool send_descriptors(FrameType type, std::string_view payload,
                        std::vector<base::UniqueFd> fds) override;

  std::vector<base::UniqueFd> take_descriptors(std::size_t count) override {
    return stream_->take_descriptors(count);
  }

  bool send_shared(std::shared_ptr<const std::string> frame_bytes) override;
  boost::asio::awaitable<void> drained(std::size_t bytes) override;

  std::size_t queued_bytes() const override { return queued_.bytes(); }

  base::Duration unanswered_for() const override;

  void charge_to(std::shared_ptr<base::ByteBudget> incoming,
                 std::shared_ptr<base::ByteBudget> outgoing) override {
    arriving_.charge_to(std::move(incoming));
    queued_.charge_to(std::move(outgoing));
  }

  void disable_write_deadline() override;

  void close() override;

  bool is_open() const override { return descriptor_.is_open(); }

  const std::string& peer() const override { return peer_; }

 private:
  // A Chunk is a run of small frames that share one buffer, or one frame that many connections
  // share.
  struct Chunk {
    std::string owned;
    std::shared_ptr<const std::string> shared;
    std::vector<base::UniqueFd> fds;  // sent with its first byte, then closed

    std::string_view bytes() const { return shared ? *shared : owned; }
  };

  boost::asio::awaitable<base::Result<void>> wait(IoStep::Kind kind);
  boost::asio::awaitable<base::Result<void>> read_more();
  boost::asio::awaitable<base::Result<void>> wait_for_room();
  [[nodiscard]] std::span<char> read_buffer() const;
  void took(const InFrame& frame);
  base::Error read_failure(const IoStep& step);
  void watch_read_deadline();

  using Timer = std::optional<boost::asio::steady_timer>;
  void arm(Timer StreamConnection::*which, base::Duration after);
  void disarm(Timer StreamConnection::*which);
  bool is_armed(Timer StreamConnection::*which) const;

  bool may_queue(FrameType type, std::size_t frame_bytes);
  void schedule_flush();
  void flush();
  IoStep write_front();
  void advance(std::size_t bytes);
  void wait_to_write(IoStep::Kind kind);
  void stop_writing();
  void queue_shrank();

  boost::asio::posix::stream_descriptor descriptor_;
  int fd_;  // number of the descriptor
  std::unique_ptr<ByteStream> stream_;
  std::string peer_;
  ConnectionLimits limits_;

  FrameReader reader_;
  bool had_frame_ = false;
  bool timed_out_ = false;
  unsigned reads_without_wait_ = 0;
  Timer read_timer_;
  std::size_t kept_ = 0;      // bytes that were read and belong to no returned frame
  bool is_let_in_ = false;    // the whole payload of the current frame counts as arriving
  base::ByteShare arriving_;  // the current frame, and the bytes behind it

  std::vector<Chunk> queue_;  // from queue_front_ on
  std::size_t queue_front_ = 0;
  std::size_t front_written_ = 0;  // bytes of the front chunk that were written
  base::ByteShare
      queued_;  // a chunk counts whole until its last byte is written, because it takes memory
  bool flush_scheduled_ = false;        // a flush is posted or waits for the socket
  bool writing_stopped_ = false;        // the peer accepts no more
  bool has_no_write_deadline_ = false;  // the write deadline is off
  Timer write_timer_;
  Timer drain_signal_;
};

}  // namespace score::proto
