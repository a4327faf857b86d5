// Sends requests and replies as messages of PM. Their bytes form a stream, so a request or reply
// longer than one message is sent as several. Each begins with a header that contains its length.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"

#include <cstdint>
#include <deque>
#include <string>

namespace score::pario {

// On shared memory no event announces room for a message or for a remote operation, so a caller
// that needs room polls at this interval.
inline constexpr std::int64_t kRoomLookUs = 500;

class Pipe {
 public:
  // `endpoint` must outlive this object.
  Pipe(pm::Endpoint& endpoint, std::uint32_t peer) : endpoint_(endpoint), peer_(peer) {}

  void push(std::string bytes) { output_.push_back(std::move(bytes)); }

  // Sends as much as there is room for. Returns true if anything was sent.
  bool flush();
  // Appends an arrived message to `input`. Returns false if there is none.
  bool receive(std::string& input);

  bool has_output() const { return !output_.empty(); }

  // Returns true if the peer has closed the connection, or sent bytes that do not belong to the
  // stream.
  bool is_broken() const { return is_broken_; }

 private:
  pm::Endpoint& endpoint_;
  std::uint32_t peer_;
  std::deque<std::string> output_;
  std::size_t sent_ = 0;  // bytes of the first message
  bool is_broken_ = false;
};

}  // namespace score::pario
