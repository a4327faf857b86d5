#include "pario/channel/pipe.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace score::pario {

bool Pipe::flush() {
  bool has_sent = false;
  const std::size_t most = endpoint_.message_bytes(peer_);
  while (!output_.empty() && !is_broken_) {
    const std::string& first = output_.front();
    const std::size_t length = std::min(most, first.size() - sent_);
    std::byte* buffer = nullptr;
    int error = endpoint_.get_send_buffer(peer_, static_cast<std::uint32_t>(length), &buffer);
    if (error == 0) {
      std::memcpy(buffer, first.data() + sent_, length);
      error = endpoint_.send();
      if (error == ENOBUFS) endpoint_.cancel_send();
    }
    if (error == ENOBUFS) break;
    is_broken_ = error != 0;
    if (is_broken_) break;
    has_sent = true;
    sent_ += length;
    if (sent_ < first.size()) continue;
    output_.pop_front();
    sent_ = 0;
  }
  return has_sent;
}

bool Pipe::receive(std::string& input) {
  pm::ReceivedMessage message;
  const int error = endpoint_.receive(message);
  if (error == EAGAIN) return false;
  if (error != 0) {
    is_broken_ = true;
    return false;
  }
  const bool is_good = message.kind == pm::FrameKind::Message && message.source == peer_;
  if (is_good) {
    input.append(reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size());
  } else {
    is_broken_ = true;
  }
  endpoint_.release(message);
  return is_good;
}

}  // namespace score::pario
