#pragma once
// Implements the PM network of the daemons: one context in the main loop of the head and of each
// node. It carries the messages of control.proto, one datagram each. Everything that it carries can
// also go over TLS, so a daemon that is not in the network works as well.
//
// A roster of the head makes the network: ranks, addresses, key. A new roster replaces the context.
// The socket stays, and frames of the previous roster are dropped (stale, or forged). Thread: that
// of the io_context. It waits for the socket and has no other thread.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/os/log.hpp"
#include "pmlib/endpoint/endpoint.hpp"
#include "scored/control/context.hpp"
#include "scored/control/control_message.hpp"
#include "scored/control/link_keys.hpp"
#include "scored/control/roster.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace score::control {

// Counts since the start of the daemon, over all rosters.
struct ControlCounters {
  std::uint64_t sent = 0;      // datagrams, one per destination
  std::uint64_t received = 0;  // messages passed to the handler
  std::uint64_t unsent = 0;    // the socket had no room, or the message was too long
  std::uint64_t malformed = 0;
  std::uint64_t foreign = 0;      // for a different rank or channel, or there is no roster
  std::uint64_t forged = 0;       // wrong tag: an old key, a different cluster, or an attack
  std::uint64_t stale = 0;        // of a different roster
  std::uint64_t unknown = 0;      // type or version
  std::uint64_t not_allowed = 0;  // the rank may not send this message
  std::uint64_t untagged = 0;     // not of its sender: no tag, or a wrong one (link_keys.hpp)
  std::uint64_t no_buffer = 0;

  struct Reason {
    const char* name;  // label of the metrics
    std::uint64_t count;
  };

  // Returns the counts of datagrams that arrived and were not passed to the handler, by reason.
  [[nodiscard]] std::array<Reason, 8> dropped() const {
    return {{{"malformed", malformed},
             {"foreign", foreign},
             {"forged", forged},
             {"stale", stale},
             {"unknown", unknown},
             {"not_allowed", not_allowed},
             {"untagged", untagged},
             {"no_buffer", no_buffer}}};
  }

  // Returns how many dropped datagrams no daemon of this cluster can have sent.
  [[nodiscard]] std::uint64_t suspicious() const {
    return malformed + foreign + forged + unknown + not_allowed + untagged;
  }
};

class ControlNetwork {
 public:
  // `message.payload` is valid only during the call. The call may replace or leave the network.
  using Handler = std::function<void(std::uint32_t source, const Message& message)>;

  ControlNetwork(asio::any_io_executor io, Clock& clock, Handler handler);

  ControlNetwork(const ControlNetwork&) = delete;
  ControlNetwork& operator=(const ControlNetwork&) = delete;

  // Opens the socket at `local` (any port), and receives from then on in a task of `tasks` until
  // the group stops. Must be called only once. Errors: errno codes.
  Status open(in_addr local, TaskGroup& tasks);

  // Returns the address at which other daemons reach it; all 0 if it is not open.
  [[nodiscard]] const pm::PeerAddress& address() const { return address_; }

  // Joins `roster` as rank `rank` with the member's keys. Errors: as open_context(); it is in no
  // network then.
  Status join(Roster roster, std::uint32_t rank, LinkKeys keys = {});
  void leave();

  [[nodiscard]] bool is_joined() const { return endpoint_ != nullptr; }

  // Returns the roster of the last join(); after leave() it has no members.
  [[nodiscard]] const Roster& roster() const { return roster_; }

  // Returns the keys of the last join(); none after leave().
  [[nodiscard]] const LinkKeys& keys() const { return keys_; }

  // Must be called only while it is joined.
  [[nodiscard]] std::uint32_t rank() const { return endpoint_->rank(); }

  // Sends once to each of `ranks`, except to itself and to ranks that are not members. Returns
  // false if it is not joined, the message is too long, or the socket had no room for some of them.
  template <class Wire>
  bool send(std::span<const std::uint32_t> ranks, const Wire& message) {
    static_assert(is_control(proto::frame_type<Wire>()));
    const std::size_t bytes = message.ByteSizeLong();
    if (bytes + kTagBytes > kMostMessageBytes) {
      ++counters_.unsent;
      return false;
    }
    message.SerializeToArray(out_.data() + sizeof(MessageHeader), static_cast<int>(bytes));
    return send_encoded(ranks, proto::frame_type<Wire>(), bytes);
  }

  template <class Wire>
  bool send(std::uint32_t rank, const Wire& message) {
    return send(std::span(&rank, 1), message);
  }

  [[nodiscard]] ControlCounters counters() const;

 private:
  bool send_encoded(std::span<const std::uint32_t> ranks, proto::FrameType type, std::size_t bytes);
  asio::awaitable<void> receive_all();
  void take_some();
  void discard_some();
  bool take_one();
  void hand_on(std::uint32_t source, std::span<const std::byte> datagram);
  [[nodiscard]] bool is_of(std::uint32_t source, std::span<const std::byte> datagram) const;
  void add_counters(ControlCounters& sum) const;
  void report_drops();

  Clock& clock_;
  Handler handler_;
  asio::posix::stream_descriptor socket_;
  pm::PeerAddress address_;  // of socket_
  Roster roster_;
  LinkKeys keys_;
  std::unique_ptr<pm::Endpoint> endpoint_;  // null: in no network
  ControlCounters counters_;                // without the counts of endpoint_
  std::uint64_t reported_ = 0;              // suspicious() at the last log line
  LogLimiter limiter_;
  std::array<std::byte, kMostDatagramBytes> out_{};
  std::array<std::byte, kMostDatagramBytes> in_{};
};

}  // namespace score::control
