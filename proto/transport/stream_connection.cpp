// Reading: all connections of a thread share one scratch buffer, so an idle connection has no
// buffer. The FrameReader keeps the bytes of an incomplete frame, and those behind a frame. These
// bytes count as arriving; without room for them, only the bytes of the current frame are read.
// Writing: frames are appended to the queue, and one posted flush writes them together; when the
// socket is full, the flush waits for it. A failed write does not close the connection, because
// data that the peer sent before it disconnected must still be read, up to its end of file. This
// file is tested by unix_connection_test.cpp and tls_connection_test.cpp.

#include "proto/transport/stream_connection.hpp"

#include "base/limits.hpp"
#include "proto/frames/errc.hpp"

#include <algorithm>
#include <array>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <utility>

namespace score::proto {

namespace asio = boost::asio;
using base::Result;

namespace {

constexpr std::size_t kScratchBytes = 32U << 10U;
constexpr std::size_t kCoalesceBytes = 16U << 10U;  // a TLS record
constexpr std::size_t kFlushBytes = 1U << 20U;      // then other connections get their turn
constexpr std::size_t kPartsPerWrite = 16;
constexpr std::size_t kSmallFrame =
    4U << 10U;  // a payload up to this size needs no room in the budget
constexpr base::Duration kRoomPoll = std::chrono::milliseconds(50);
// After this many reads that found data at once, other connections get their turn.
constexpr unsigned kReadsPerTurn = 32;

}  // namespace

std::shared_ptr<const std::string> encode_frame(FrameType type, std::string_view payload) {
  return std::make_shared<const std::string>(encode_frame_bytes(type, payload));
}

StreamConnection::StreamConnection(asio::posix::stream_descriptor descriptor,
                                   std::unique_ptr<ByteStream> stream, std::string peer,
                                   ConnectionLimits limits)
    : descriptor_(std::move(descriptor)),
      fd_(descriptor_.native_handle()),
      stream_(std::move(stream)),
      peer_(std::move(peer)),
      limits_(limits) {}

StreamConnection::~StreamConnection() {
  close();
}

asio::awaitable<Result<void>> StreamConnection::handshake(base::Duration deadline) {
  auto self = shared_from_this();
  arm(&StreamConnection::read_timer_, deadline);
  for (;;) {
    if (!is_open()) co_return read_failure({IoStep::Kind::End, 0, {}});
    IoStep step = stream_->handshake();
    if (step.kind == IoStep::Kind::Done) break;
    if (step.kind == IoStep::Kind::End || step.kind == IoStep::Kind::Failed) {
      base::Error error = read_failure(step);
      close();
      co_return error;
    }
    auto waited = co_await wait(step.kind);
    if (!waited) co_return waited.error();
  }
  disarm(&StreamConnection::read_timer_);
  co_return Result<void>();
}

asio::awaitable<Result<InFrame>> StreamConnection::read(Role sender) {
  auto self = shared_from_this();
  for (;;) {
    auto frame = reader_.next(sender);
    if (!frame) {
      disarm(&StreamConnection::read_timer_);
      co_return frame.error();
    }
    if (*frame) {
      had_frame_ = true;
      took(**frame);
      disarm(&StreamConnection::read_timer_);
      co_return std::move(**frame);
    }
    auto more = co_await read_more();
    if (!more) {
      disarm(&StreamConnection::read_timer_);
      co_return more.error();
    }
  }
}

// Reads once into the reader and waits for the socket if necessary.
asio::awaitable<Result<void>> StreamConnection::read_more() {
  if (++reads_without_wait_ > kReadsPerTurn) {
    reads_without_wait_ = 0;
    co_await asio::post(descriptor_.get_executor(), asio::use_awaitable);
  }
  if (reader_.missing_payload() > kSmallFrame && !is_let_in_) {
    auto waited = co_await wait_for_room();
    if (!waited) co_return waited.error();
    is_let_in_ = true;
    arriving_.set(kept_ + reader_.missing_payload());
  }
  for (;;) {
    if (!is_open()) co_return read_failure({IoStep::Kind::End, 0, {}});
    const std::span<char> buffer = read_buffer();
    IoStep step = stream_->read_some(buffer);
    if (step.kind == IoStep::Kind::Done) {
      reader_.feed({buffer.data(), step.bytes});
      kept_ += step.bytes;
      if (!is_let_in_) arriving_.set(kept_);
      co_return Result<void>();
    }
    if (step.kind == IoStep::Kind::End || step.kind == IoStep::Kind::Failed) {
      co_return read_failure(step);
    }
    watch_read_deadline();
    reads_without_wait_ = 0;
    auto waited = co_await wait(step.kind);
    if (!waited) co_return waited.error();
  }
}

// Reading ahead leaves room for the largest frame. Otherwise connections that are in the middle of
// a frame could wait for each other.
std::span<char> StreamConnection::read_buffer() const {
  thread_local std::array<char, kScratchBytes> buffer;
  if (arriving_.may_add(base::limits::kMaxFrameBytes)) return buffer;
  return std::span(buffer).first(std::clamp(reader_.wanted_bytes(), kHeaderBytes, kScratchBytes));
}

void StreamConnection::took(const InFrame& frame) {
  kept_ -= std::min(kept_, kHeaderBytes + frame.payload.size());
  is_let_in_ = false;
  arriving_.set(kept_);
}

// A frame whose payload has been admitted is read to its end, so that two incomplete frames never
// wait for each other.
asio::awaitable<Result<void>> StreamConnection::wait_for_room() {
  while (!arriving_.may_add(reader_.missing_payload())) {
    watch_read_deadline();
    asio::steady_timer pause(descriptor_.get_executor(), kRoomPoll);
    auto [ec] = co_await pause.async_wait(kNoThrow);
    if (!is_open()) co_return read_failure({IoStep::Kind::End, 0, {}});
    if (ec) co_return base::fail(base::Errc::Cancelled, "cannot read");
  }
  co_return Result<void>();
}

asio::awaitable<Result<void>> StreamConnection::wait(IoStep::Kind kind) {
  auto direction = kind == IoStep::Kind::WaitRead ? asio::posix::descriptor_base::wait_read
                                                  : asio::posix::descriptor_base::wait_write;
  auto [ec] = co_await descriptor_.async_wait(direction, kNoThrow);
  if (!is_open()) co_return read_failure({IoStep::Kind::End, 0, {}});
  if (ec == asio::error::operation_aborted)
    co_return base::fail(base::Errc::Cancelled, "cannot read");
  if (ec) co_return base::fail(ec, "cannot read");
  co_return Result<void>();
}

base::Error StreamConnection::read_failure(const IoStep& step) {
  if (timed_out_) return base::fail(base::Errc::Timeout, "{}", peer_);
  if (step.kind == IoStep::Kind::Failed) {
    if (step.error == std::errc::connection_reset || step.error == std::errc::broken_pipe) {
      return base::fail(base::Errc::Closed, "{}", peer_);
    }
    return base::fail(step.error, "{}", peer_);
  }
  if (!reader_.is_between_frames() && is_open()) {
    return base::fail(WireErrc::BadFrame, "{}: stream ends inside a frame", peer_);
  }
  return base::fail(base::Errc::Closed, "{}", peer_);
}

// The first frame has a deadline from the start of the connection, later ones from the start of
// their header. A running timer is not restarted, so that a peer cannot extend it by sending
// slowly.
void StreamConnection::watch_read_deadline() {
  if (is_armed(&StreamConnection::read_timer_)) return;
  if (!had_frame_ && limits_.header_deadline.count() > 0) {
    arm(&StreamConnection::read_timer_, limits_.header_deadline);
  } else if (!reader_.is_between_frames() && limits_.frame_deadline.count() > 0) {
    arm(&StreamConnection::read_timer_, limits_.frame_deadline);
  }
}

void StreamConnection::arm(Timer StreamConnection::*which, base::Duration after) {
  Timer& timer = this->*which;
  if (!timer) timer.emplace(descriptor_.get_executor());
  timer->expires_after(after);
  timer->async_wait([weak = weak_from_this(), which](const boost::system::error_code& ec) {
    auto self = weak.lock();
    // Ignores a timer that was disarmed while its handler was already queued.
    if (ec || !self || !self->is_open() || !self->is_armed(which)) return;
    self->timed_out_ = true;
    self->close();
  });
}

void StreamConnection::disarm(Timer StreamConnection::*which) {
  if (is_armed(which)) (this->*which)->expires_at(asio::steady_timer::time_point::max());
}

bool StreamConnection::is_armed(Timer StreamConnection::*which) const {
  const Timer& timer = this->*which;
  return timer && timer->expiry() != asio::steady_timer::time_point::max();
}

bool StreamConnection::may_queue(FrameType type, std::size_t frame_bytes) {
  const FrameRule* rule = find_rule(type);
  if (!is_open() || writing_stopped_ || rule == nullptr) return false;
  if (frame_bytes - kHeaderBytes > rule->max_bytes) return false;
  const bool is_full =
      queued_.bytes() > 0 && queued_.bytes() + frame_bytes > limits_.write_queue_bytes;
  if (is_full || !queued_.may_add(frame_bytes)) {
    close();
    return false;
  }
  return true;
}

bool StreamConnection::send(FrameType type, std::string_view payload) {
  std::size_t bytes = kHeaderBytes + payload.size();
  if (!may_queue(type, bytes)) return false;
  bool has_room = queue_.size() > queue_front_ && !queue_.back().shared &&
                  queue_.back().owned.size() + bytes <= kCoalesceBytes;
  if (has_room) {
    append_frame(queue_.back().owned, type, payload);
  } else {
    Chunk& chunk = queue_.emplace_back();
    append_frame(chunk.owned, type, payload);
  }
  queued_.set(queued_.bytes() + bytes);
  schedule_flush();
  return true;
}

bool StreamConnection::send_descriptors(FrameType type, std::string_view payload,
                                        std::vector<base::UniqueFd> fds) {
  const std::size_t bytes = kHeaderBytes + payload.size();
  if (!may_queue(type, bytes)) return false;
  Chunk& chunk = queue_.emplace_back();
  append_frame(chunk.owned, type, payload);
  chunk.fds = std::move(fds);
  queued_.set(queued_.bytes() + bytes);
  schedule_flush();
  return true;
}

bool StreamConnection::send_shared(std::shared_ptr<const std::string> frame_bytes) {
  if (frame_bytes->size() < kHeaderBytes) return false;
  auto header = decode_header(std::as_bytes(std::span(*frame_bytes)).first<kHeaderBytes>());
  if (!header || !may_queue(FrameType{header->type}, frame_bytes->size())) return false;
  queued_.set(queued_.bytes() + frame_bytes->size());
  queue_.emplace_back().shared = std::move(frame_bytes);
  schedule_flush();
  return true;
}

void StreamConnection::schedule_flush() {
  if (flush_scheduled_) return;
  flush_scheduled_ = true;
  asio::post(descriptor_.get_executor(), [weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self) return;
    self->flush_scheduled_ = false;
    self->flush();
  });
}

void StreamConnection::flush() {
  std::size_t written = 0;
  while (queued_.bytes() > 0 && is_open()) {
    if (written >= kFlushBytes) return schedule_flush();
    IoStep step = write_front();
    switch (step.kind) {
      case IoStep::Kind::Done:
        advance(step.bytes);
        written += step.bytes;
        break;
      case IoStep::Kind::WaitRead:
      case IoStep::Kind::WaitWrite:
        return wait_to_write(step.kind);
      case IoStep::Kind::End:
      case IoStep::Kind::Failed:
        return stop_writing();
    }
  }
}

IoStep StreamConnection::write_front() {
  std::array<std::string_view, kPartsPerWrite> parts;
  std::size_t count = 0;
  if (Chunk& front = queue_[queue_front_]; !front.fds.empty()) {
    const IoStep step = stream_->write_with(front.bytes(), front.fds);
    if (step.kind == IoStep::Kind::Done) front.fds.clear();
    return step;
  }
  for (std::size_t i = queue_front_; i < queue_.size() && count < parts.size(); ++i) {
    if (!queue_[i].fds.empty()) break;
    parts[count++] = queue_[i].bytes();
  }
  parts[0].remove_prefix(front_written_);
  return stream_->write_some(std::span(parts).first(count));
}

void StreamConnection::advance(std::size_t bytes) {
  std::size_t freed = 0;
  bytes += front_written_;
  while (queue_front_ < queue_.size() && bytes >= queue_[queue_front_].bytes().size()) {
    bytes -= queue_[queue_front_].bytes().size();
    freed += queue_[queue_front_].bytes().size();
    queue_[queue_front_++] = Chunk();
  }
  front_written_ = bytes;
  queued_.set(queued_.bytes() - freed);
  if (queue_front_ == queue_.size()) {
    queue_.clear();
    queue_front_ = 0;
    if (queue_.capacity() > kPartsPerWrite) queue_.shrink_to_fit();
  } else if (queue_front_ >= queue_.size() / 2 && queue_front_ >= kPartsPerWrite) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(queue_front_));
    queue_front_ = 0;
  }
  disarm(&StreamConnection::write_timer_);
  queue_shrank();
}

void StreamConnection::wait_to_write(IoStep::Kind kind) {
  const bool has_deadline = !has_no_write_deadline_ && limits_.write_deadline.count() > 0;
  if (has_deadline && !is_armed(&StreamConnection::write_timer_)) {
    arm(&StreamConnection::write_timer_, limits_.write_deadline);
  }
  flush_scheduled_ = true;
  auto direction = kind == IoStep::Kind::WaitRead ? asio::posix::descriptor_base::wait_read
                                                  : asio::posix::descriptor_base::wait_write;
  descriptor_.async_wait(direction, [weak = weak_from_this()](const boost::system::error_code& ec) {
    auto self = weak.lock();
    if (!self) return;
    self->flush_scheduled_ = false;
    if (!ec) self->flush();
  });
}

void StreamConnection::disable_write_deadline() {
  has_no_write_deadline_ = true;
  disarm(&StreamConnection::write_timer_);
}

void StreamConnection::stop_writing() {
  writing_stopped_ = true;
  queue_ = std::vector<Chunk>();
  queue_front_ = 0;
  front_written_ = 0;
  queued_.set(0);
  disarm(&StreamConnection::write_timer_);
  queue_shrank();
}

void StreamConnection::queue_shrank() {
  if (drain_signal_) drain_signal_->cancel();
}

asio::awaitable<void> StreamConnection::drained(std::size_t bytes) {
  auto self = shared_from_this();
  while (is_open() && queued_.bytes() >= bytes && queued_.bytes() > 0) {
    if (!drain_signal_) {
      drain_signal_.emplace(descriptor_.get_executor(), asio::steady_timer::time_point::max());
    }
    [[maybe_unused]] auto [ec] = co_await drain_signal_->async_wait(kNoThrow);
  }
}

base::Duration StreamConnection::unanswered_for() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (!is_open() || ::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  if (info.tcpi_unacked == 0) return {};
  return std::chrono::milliseconds(std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv));
}

void StreamConnection::close() {
  if (!is_open()) return;
  // Makes a last attempt to write frames that were queued in this turn, such as the reason for
  // closing.
  while (queued_.bytes() > 0 && !writing_stopped_) {
    IoStep step = write_front();
    if (step.kind != IoStep::Kind::Done) {
      stop_writing();
      break;
    }
    advance(step.bytes);
  }
  if (!writing_stopped_) stream_->shut_down();
  stop_writing();
  disarm(&StreamConnection::read_timer_);
  boost::system::error_code ignored;
  descriptor_.close(ignored);
}

}  // namespace score::proto
