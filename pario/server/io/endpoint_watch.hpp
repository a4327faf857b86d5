// Lets the ring wait for an endpoint of PM: the descriptors by which it learns of something new.
#pragma once

#include "pario/server/io/ring.hpp"
#include "pmlib/endpoint/endpoint.hpp"

#include <cstdint>
#include <functional>
#include <utility>

namespace score::pario {

class EndpointWatch {
 public:
  // Calls `woken` when there may be something to receive. The references must outlive this object
  // until close().
  EndpointWatch(pm::Endpoint& endpoint, Ring& ring, std::function<void()> woken)
      : endpoint_(endpoint), ring_(ring), woken_(std::move(woken)) {}

  // Returns false if there is something to do. `needs_room`: see kRoomLookUs.
  bool arm(bool needs_room);
  void disarm();
  void close();

  // Returns true while the ring uses this object, also after close().
  bool is_polling() const { return peers_news_.is_polling || device_news_.is_polling; }

  // Returns when the endpoint needs a turn even if nothing has arrived (CLOCK_MONOTONIC); less than
  // 0: never.
  std::int64_t due_us() const { return is_armed_ ? due_us_ : -1; }

 private:
  struct Polled final : Completion {
    explicit Polled(const EndpointWatch& owner) : watch(owner) {}

    void complete(int) override {
      is_polling = false;
      watch.woken_();
    }

    const EndpointWatch& watch;
    bool is_polling = false;  // the ring watches the descriptor
  };

  void poll(Polled& polled, int fd);

  pm::Endpoint& endpoint_;
  Ring& ring_;
  std::function<void()> woken_;
  Polled peers_news_{*this};   // memory of the node
  Polled device_news_{*this};  // packets
  bool is_armed_ = false;      // prepare_sleep() has been called
  std::int64_t due_us_ = -1;
};

}  // namespace score::pario
