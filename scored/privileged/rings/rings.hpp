// Opens Ethernet rings whose holder need not be trusted: the kernel bounds what they send and
// receive.
//
// A packet socket lets its holder send any bytes on any interface, bind it again and make the
// interface promiscuous. So rings are opened in a network namespace with one interface, a macvlan
// that leads to the node's. There is nothing else to bind to, and only the macvlan can become
// promiscuous. On its way out through the node's interface, every frame passes a program that drops
// frames that are not from the ring's own address, channel, rank and attempt. The socket is in a
// fanout group of its own, which the kernel never binds again. Incoming frames pass the socket's
// locked filter. scored-ring-guard prepares all that (../ring_guard).
#pragma once

#include "scored/privileged/rings/protocol.hpp"

namespace score::rings {

class Rings {
 public:
  // `interface` must outlive this; null: rings are never opened. `guard` is the program; null: the
  // one next to this program.
  explicit Rings(const char* interface, const char* guard = nullptr)
      : interface_(interface), guard_(guard) {}

  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;
  ~Rings();

  // Returns a ring for `request`, after a test that it cannot send anything else. Returns -1 with
  // the reason in `failure` if that is not possible. The first ring, and the first one after the
  // interface has changed, take some 20 ms.
  int open(const RingRequest& request, RingFailure& failure);

 private:
  // Returns a network namespace with the rings' interface; the caller must close it.
  int make_space(RingFailure& failure);
  bool prepare(RingFailure& failure);
  int open_inside(const RingRequest& request, RingFailure& failure) const;
  void forget();

  const char* interface_;
  const char* guard_;
  int own_ = -1;    // this process's network namespace
  int space_ = -1;  // namespace of the rings; -1: not prepared
  int table_ = -1;  // bounds by socket
};

}  // namespace score::rings
