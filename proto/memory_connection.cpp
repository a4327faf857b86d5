#include "proto/memory_connection.hpp"

#include "proto/errc.hpp"

#include <deque>
#include <utility>

namespace score::proto {

namespace asio = boost::asio;

namespace {

class MemoryConnection final : public Connection,
                               public std::enable_shared_from_this<MemoryConnection> {
 public:
  MemoryConnection(asio::any_io_executor executor, std::string peer, ConnectionLimits limits)
      : changed_(executor, asio::steady_timer::time_point::max()),
        peer_name_(std::move(peer)),
        limits_(limits) {}

  ~MemoryConnection() override { close(); }

  void meet(const std::shared_ptr<MemoryConnection>& peer) { peer_ = peer; }

  asio::awaitable<base::Result<InFrame>> read(Role sender) override;
  bool send(FrameType type, std::string_view payload) override;
  bool send_shared(std::shared_ptr<const std::string> frame_bytes) override;
  asio::awaitable<void> drained(std::size_t bytes) override;

  std::size_t queued_bytes() const override {
    auto peer = peer_.lock();
    return peer && is_open_ ? peer->inbox_bytes_ : 0;
  }

  void close() override;

  bool is_open() const override { return is_open_; }

  const std::string& peer() const override { return peer_name_; }

 private:
  void take(InFrame frame);

  asio::steady_timer changed_;  // at infinity; cancelled when something changed
  std::weak_ptr<MemoryConnection> peer_;
  std::string peer_name_;
  ConnectionLimits limits_;
  std::deque<InFrame> inbox_;
  std::size_t inbox_bytes_ = 0;
  bool is_open_ = true;
  bool peer_closed_ = false;
};

asio::awaitable<base::Result<InFrame>> MemoryConnection::read(Role sender) {
  auto self = shared_from_this();
  while (is_open_ && inbox_.empty() && !peer_closed_) {
    auto [ec] = co_await changed_.async_wait(kNoThrow);
    if (!ec) break;  // infinity came
  }
  if (!is_open_ || inbox_.empty()) co_return base::fail(base::Errc::Closed, "{}", peer_name_);
  InFrame frame = std::move(inbox_.front());
  inbox_.pop_front();
  inbox_bytes_ -= kHeaderBytes + frame.payload.size();
  if (auto peer = peer_.lock()) peer->changed_.cancel();
  FrameHeader header;
  header.type = static_cast<std::uint16_t>(frame.type);
  header.length = static_cast<std::uint32_t>(frame.payload.size());
  auto rule = check_header(header, sender);
  if (!rule) co_return rule.error();
  co_return frame;
}

bool MemoryConnection::send(FrameType type, std::string_view payload) {
  auto peer = peer_.lock();
  const FrameRule* rule = find_rule(type);
  if (!is_open_ || peer_closed_ || !peer || rule == nullptr) return false;
  if (payload.size() > rule->max_bytes) return false;
  std::size_t bytes = kHeaderBytes + payload.size();
  if (peer->inbox_bytes_ > 0 && peer->inbox_bytes_ + bytes > limits_.write_queue_bytes) {
    close();
    return false;
  }
  peer->take({type, std::string(payload)});
  return true;
}

bool MemoryConnection::send_shared(std::shared_ptr<const std::string> frame_bytes) {
  if (frame_bytes->size() < kHeaderBytes) return false;
  auto header = decode_header(std::as_bytes(std::span(*frame_bytes)).first<kHeaderBytes>());
  if (!header) return false;
  return send(FrameType{header->type}, std::string_view(*frame_bytes).substr(kHeaderBytes));
}

void MemoryConnection::take(InFrame frame) {
  inbox_bytes_ += kHeaderBytes + frame.payload.size();
  inbox_.push_back(std::move(frame));
  changed_.cancel();
}

asio::awaitable<void> MemoryConnection::drained(std::size_t bytes) {
  auto self = shared_from_this();
  while (queued_bytes() > 0 && queued_bytes() >= bytes) {
    [[maybe_unused]] auto [ec] = co_await changed_.async_wait(kNoThrow);
  }
}

void MemoryConnection::close() {
  if (!is_open_) return;
  is_open_ = false;
  inbox_.clear();
  inbox_bytes_ = 0;
  changed_.cancel();
  if (auto peer = peer_.lock()) {
    peer->peer_closed_ = true;
    peer->changed_.cancel();
  }
}

}  // namespace

MemoryPair make_memory_pair(asio::any_io_executor executor, std::string first_name,
                            std::string second_name, ConnectionLimits limits) {
  auto first = std::make_shared<MemoryConnection>(executor, std::move(second_name), limits);
  auto second = std::make_shared<MemoryConnection>(executor, std::move(first_name), limits);
  first->meet(second);
  second->meet(first);
  return {first, second};
}

}  // namespace score::proto
