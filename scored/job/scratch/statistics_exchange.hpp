#pragma once
// One connection to a server of a volume that only asks what it counts: handshake, then a question
// at a time. Pure: bytes in, bytes out (docs/reference/pario.md, Protocol).

#include "pario/core/volume_file.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace score::shepherd {

class StatisticsExchange {
 public:
  // `volume` outlives it. server: its index in the volume; nonce: random.
  StatisticsExchange(const pario::VolumeDescription& volume, std::uint32_t server,
                     const pario::Nonce& nonce);

  // Bytes of the server; gives those to send, perhaps none. nullopt: the server does not follow the
  // protocol, or has not the key.
  std::optional<std::string> take(std::string_view bytes);

  // The next question may be asked.
  [[nodiscard]] bool is_ready() const { return state_ == State::Ready; }

  // Only if it is ready.
  std::string question();
  // The last answer, once.
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
