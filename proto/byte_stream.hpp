// What differs between a plain socket and one under TLS: how bytes are moved without blocking. The
// waiting, framing and queueing are StreamConnection's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>

namespace score::proto {

// What one attempt gave.
struct IoStep {
  enum class Kind : std::uint8_t {
    Done,       // `bytes` were moved (> 0), or the handshake is complete
    WaitRead,   // try again when the socket is readable
    WaitWrite,  // ... writable
    End,        // the peer sends no more
    Failed,     // `error`
  };
  Kind kind = Kind::Done;
  std::size_t bytes = 0;
  std::error_code error;
};

// Of a descriptor that it does not own and that does not block.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  virtual IoStep handshake() = 0;  // Done at once where there is none
  virtual IoStep read_some(std::span<char> into) = 0;
  // Writes a prefix of the parts laid end to end. After a wait it must be called with parts that
  // begin with the same bytes.
  virtual IoStep write_some(std::span<const std::string_view> parts) = 0;
  virtual void say_goodbye() = 0;  // before the descriptor closes; best effort
};

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(int fd) : fd_(fd) {}

  IoStep handshake() override { return {}; }

  IoStep read_some(std::span<char> into) override;
  IoStep write_some(std::span<const std::string_view> parts) override;

  void say_goodbye() override {}

 private:
  int fd_;
};

}  // namespace score::proto
