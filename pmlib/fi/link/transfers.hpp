// Moves the bytes of large transfers. Both ends of a transfer hold a region of PM while its bytes
// move, from two quotas. With a single quota, two processes that fetch from each other could each
// hold all their regions for incoming bytes and have none for outgoing ones.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/fi/link/dropped_regions.hpp"
#include "pmlib/fi/link/id_table.hpp"
#include "pmlib/fi/link/port.hpp"
#include "pmlib/fi/link/requests.hpp"
#include "pmlib/fi/link/sender.hpp"
#include "pmlib/fi/link/wire.hpp"
#include "pmlib/fi/peers/peers.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace score::pm::fi {

// Bytes that arrive in this process by a large transfer.
struct TransferArrival {
  virtual ~TransferArrival() = default;
  // The link calls this once, and then deletes the object.
  virtual void finish(int error) = 0;
};

class Transfers {
 public:
  Transfers(pm::Endpoint& pm, Sender& sender, Requests& requests, DroppedRegions& regions)
      : pm_(pm), sender_(sender), requests_(requests), regions_(regions) {}

  // Asks the peer to write the announced message `request` to `memory`, then ends `arrival`.
  void fetch(PortName from, std::uint32_t request, std::span<std::byte> memory,
             std::unique_ptr<TransferArrival> arrival);
  // Sends the Read that `header` and `extra` describe and receives its bytes in `memory`. Then ends
  // `request`.
  void read_into(std::unique_ptr<LinkRequest> request, const Header& header, const RmaExtra& extra,
                 std::span<std::byte> memory);
  // Writes `memory` to the place that a peer's Read has named.
  void answer_read(PortName to, const RmaExtra& extra, std::span<const std::byte> memory);

  // These take a message of that kind.
  void on_go_ahead(const IncomingMessage& in);
  void on_finished(const IncomingMessage& in);

  bool has_outgoing() const { return !outbounds_.empty() || !waiting_outbounds_.empty(); }

  bool has_any() const {
    return has_outgoing() || !waiting_inbounds_.empty() || !regions_.is_empty();
  }

  // Continues all transfers. Returns true if one that goes out has ended.
  bool pump_all();
  // Ends a transfer that comes in; `id` must name one.
  void end_inbound(std::uint32_t id, int error);
  // Ends the transfers that come in from a peer that has died.
  void fail(std::uint32_t peer);

 private:
  struct Inbound {
    PortName from;
    std::uint32_t request = 0;  // the peer's; this process's if it is a Read
    std::span<std::byte> memory;
    std::unique_ptr<TransferArrival> arrival;  // null: a Read
    Header header;                             // header of the Read
    RmaExtra extra;
    std::uint32_t region = 0;
    bool is_started = false;
  };

  struct Outbound {
    PortName to;
    std::uint32_t request = 0;  // this process's; 0: the answer to a Read
    std::uint32_t inbound = 0;  // the peer's
    fi::RegionPlace place;
    std::span<const std::byte> memory;
    std::uint64_t written = 0;
    std::uint32_t region = 0;
    std::uint64_t region_offset = 0;
    OperationId operation = 0;
    bool has_region = false;
    bool is_told = false;
    int error = 0;
  };

  void start_inbounds();
  bool start_inbound(Inbound& inbound, std::uint32_t id);
  bool pump(Outbound& outbound);
  bool write_chunk(Outbound& outbound);
  [[nodiscard]] bool is_ordered(const Outbound& outbound) const;
  void send_finished(Outbound& outbound);

  pm::Endpoint& pm_;
  Sender& sender_;
  Requests& requests_;
  DroppedRegions& regions_;
  IdTable<std::unique_ptr<Inbound>> inbounds_;
  std::deque<std::uint32_t> waiting_inbounds_;
  std::size_t started_inbounds_ = 0;
  std::vector<Outbound> outbounds_;
  std::deque<Outbound> waiting_outbounds_;
};

}  // namespace score::pm::fi
