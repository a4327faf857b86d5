// Requests and replies as messages of PM. Their bytes form a stream, so that one that is longer
// than a message is several: each begins with a header that has its length.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"

#include <cstdint>
#include <deque>
#include <string>

namespace score::pario {

// Room for a message, or for a remote operation, comes without an event on shared memory: who needs
// it looks again so soon.
inline constexpr std::int64_t kRoomLookUs = 500;

class Pipe {
 public:
  // `endpoint` must outlive this.
  Pipe(pm::Endpoint& endpoint, std::uint32_t peer) : endpoint_(endpoint), peer_(peer) {}

  void push(std::string bytes) { output_.push_back(std::move(bytes)); }

  // Sends what there is room for. True if anything was sent.
  bool flush();
  // Appends a message that has come to `input`. False: there is none.
  bool receive(std::string& input);

  bool has_output() const { return !output_.empty(); }

  // The peer is gone, or sent something that is no part of the stream.
  bool is_broken() const { return is_broken_; }

 private:
  pm::Endpoint& endpoint_;
  std::uint32_t peer_;
  std::deque<std::string> output_;
  std::size_t sent_ = 0;  // of the first of them
  bool is_broken_ = false;
};

}  // namespace score::pario
