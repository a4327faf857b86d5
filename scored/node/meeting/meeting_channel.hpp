// Carries messages between the switchers' threads of a job's nodes in barrier mode: datagrams of a
// PM context that belongs to this thread. Nothing here blocks, allocates or waits for the main
// thread.
#pragma once

#include "base/ids.hpp"
#include "base/model/model.hpp"
#include "base/os/fd.hpp"
#include "gang/control/dissemination.hpp"
#include "pmlib/endpoint/endpoint.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace score::node {

// Holds a word of the dissemination barrier, with the attempt and the meeting to which it belongs.
struct MeetingWord {
  AttemptId attempt{0};
  base::Meeting meeting = base::Meeting::Stopped;
  gang::Dissemination::Word word;

  friend bool operator==(const MeetingWord&, const MeetingWord&) = default;
};

// Defines the bytes of a datagram: docs/reference/wire.md. Numbers are little-endian.
struct MeetingDatagram {
  static constexpr std::uint16_t kType = 302;
  static constexpr std::uint16_t kVersion = 1;

  std::uint16_t type = kType;
  std::uint16_t version = kVersion;
  std::uint8_t meeting = 0;  // base::Meeting
  std::uint8_t round = 0;
  std::uint8_t asks = 0;      // 1: asks for the receiver's word of this round
  std::uint8_t reserved = 0;  // 0
  std::uint64_t attempt = 0;
  std::int64_t boundary_ns = 0;  // cluster time
};

static_assert(sizeof(MeetingDatagram) == 24);

[[nodiscard]] MeetingDatagram encode(const MeetingWord& word) noexcept;
// Returns nullopt if the bytes are not such a datagram.
[[nodiscard]] std::optional<MeetingWord> decode(std::span<const std::byte> bytes) noexcept;

class MeetingChannel {
 public:
  // `socket` is a descriptor of the endpoint to wait on.
  MeetingChannel(std::unique_ptr<pm::Endpoint> endpoint, UniqueFd socket)
      : endpoint_(std::move(endpoint)), socket_(std::move(socket)) {}

  // Returns true if the rank has a channel too. Thread: the main one, before the channel is handed
  // over.
  [[nodiscard]] bool reaches(std::uint32_t rank) const;

  // Sends a word. It is lost if the network does not accept it, and the receiver will ask for it.
  void send(std::uint32_t rank, const MeetingWord& word) noexcept;

  struct Received {
    std::uint32_t source = 0;  // rank
    MeetingWord word;
  };

  // Returns the next word, or nullopt if there is none. Other messages are dropped.
  [[nodiscard]] std::optional<Received> receive() noexcept;

  // Is readable when receive() may have something.
  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  std::unique_ptr<pm::Endpoint> endpoint_;
  UniqueFd socket_;
};

}  // namespace score::node
