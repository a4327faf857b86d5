#pragma once
// Implements one connection to a server of a volume that only reads its statistics: a handshake,
// then one request at a time. This class is pure: bytes in, bytes out (docs/reference/pario.md,
// Protocol).

#include "pario/core/volume_file.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace score::shepherd {

class StatisticsExchange {
 public:
  // `volume` must outlive this object. server: its index in the volume; nonce: random.
  StatisticsExchange(const pario::VolumeDescription& volume, std::uint32_t server,
                     const pario::Nonce& nonce);

  // Takes bytes of the server and returns those to send, which may be none. Returns nullopt if the
  // server violates the protocol or does not have the key.
  std::optional<std::string> take(std::string_view bytes);

  // Returns true if the next question may be asked.
  [[nodiscard]] bool is_ready() const { return state_ == State::Ready; }

  // Returns the next question. Call it only if is_ready().
  std::string question();
  // Returns the last answer, once.
  std::optional<pario::Statistics> answer();

 private:
  enum class State { Greeting, Welcome, Ready, Asked };

  std::optional<std::string> take_greeting();
  std::optional<std::string> take_welcome();
  std::optional<std::string> take_reply();

  const pario::VolumeDescription& volume_;
  State state_ = State::Greeting;
  std::string input_;
  pario::ProofOf proof_;
  std::uint64_t tag_ = 0;
  std::optional<pario::Statistics> answer_;
};

}  // namespace score::shepherd
