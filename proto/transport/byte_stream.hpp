// A ByteStream sends and receives bytes without blocking. It is different for a plain socket and
// one under TLS. StreamConnection does the waiting, framing and queueing.
#pragma once

#include "base/os/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

namespace score::proto {

// IoStep is the result of one attempt.
struct IoStep {
  enum class Kind : std::uint8_t {
    Done,       // `bytes` were moved (> 0), or the handshake is complete
    WaitRead,   // try again when the socket is readable
    WaitWrite,  // try again when the socket is writable
    End,        // the peer sends no more
    Failed,     // the operation failed with `error`
  };
  Kind kind = Kind::Done;
  std::size_t bytes = 0;
  std::error_code error;
};

// A ByteStream uses a non-blocking descriptor that it does not own.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  virtual IoStep handshake() = 0;  // Done at once if the stream has none
  virtual IoStep read_some(std::span<char> into) = 0;
  // Writes a prefix of the concatenated parts. After a wait it must be called with parts that begin
  // with the same bytes.
  virtual IoStep write_some(std::span<const std::string_view> parts) = 0;
  // Writes a prefix of the bytes, and the descriptors with the first byte. Not every stream
  // supports it.
  virtual IoStep write_with(std::string_view bytes, std::span<const base::UniqueFd> fds);
  // Returns descriptors that came with the bytes read so far and were not taken yet, at most
  // `count`, oldest first.
  virtual std::vector<base::UniqueFd> take_descriptors(std::size_t count);
  virtual void shut_down() = 0;  // call it before the descriptor closes; best effort
};

class PlainStream final : public ByteStream {
 public:
  // `descriptors` is the largest number that may wait to be taken; if it is 0, received descriptors
  // are closed.
  explicit PlainStream(int fd, std::size_t descriptors = 0) : fd_(fd), most_waiting_(descriptors) {}

  IoStep handshake() override { return {}; }

  IoStep read_some(std::span<char> into) override;
  IoStep write_some(std::span<const std::string_view> parts) override;
  IoStep write_with(std::string_view bytes, std::span<const base::UniqueFd> fds) override;
  std::vector<base::UniqueFd> take_descriptors(std::size_t count) override;

  void shut_down() override {}

 private:
  IoStep read_with_descriptors(std::span<char> into);

  int fd_;
  std::size_t most_waiting_;
  std::vector<base::UniqueFd> waiting_;
};

}  // namespace score::proto
