// Receives messages and gives each to the port, the transfer or the request that it is for.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/fi/link/port.hpp"
#include "pmlib/fi/link/requests.hpp"
#include "pmlib/fi/link/transfers.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace score::pm::fi {

class Receiver final : private MessageConsumer {
 public:
  Receiver(pm::Endpoint& pm, Requests& requests, Transfers& transfers, DeathListener& listener);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Returns 0, or ENOSPC if there are too many ports.
  int add_port(Port& port, std::uint16_t& number);
  void remove_port(std::uint16_t number);
  // Describes a receive of any port; see Port::find_oldest().
  [[nodiscard]] bool find_receive(const TagFilter& filter, Awaited& awaited) const;

  // Receives what has arrived, up to a limit. Returns true if there was anything.
  bool receive();

  // Ends the message that was arriving from a peer that has died.
  void fail(std::uint32_t peer);

 private:
  // The message of a peer that arrives in Fragments.
  struct Arriving {
    Inflow* inflow = nullptr;  // null: none
    std::uint16_t port = 0;
    std::size_t left = 0;
  };

  void on_received(const ReceivedMessage& message);
  void give_back_later(const ReceivedMessage& message);
  bool take_fast(const IncomingMessage& in);
  [[gnu::noinline]] void on_message(const IncomingMessage& in);
  static void on_fragment(Arriving& arriving, std::span<const std::byte> bytes);
  void on_answer(const IncomingMessage& in);

  bool take(std::uint32_t source, std::span<const std::byte> bytes) override;
  Place place(std::uint32_t source, std::span<const std::byte> bytes) override;
  void placed(std::uint32_t source, std::size_t count) override;

  pm::Endpoint& pm_;
  Requests& requests_;
  Transfers& transfers_;
  DeathListener& listener_;
  std::vector<Port*> ports_;
  std::vector<Arriving> arriving_;  // one per peer
  ReceivedMessage held_;            // the next receive() gives it back to PM
  bool holds_ = false;              // held_ is set
  bool is_handling_ = false;        // on_received() runs
  bool has_taken_ = false;          // take() has received bytes since the last turn
};

}  // namespace score::pm::fi
