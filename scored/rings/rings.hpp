// Ethernet rings whose holder need not be trusted: the kernel bounds what they send and receive.
//
// A packet socket lets its holder send any bytes on any interface, bind it again and make the
// interface promiscuous. So rings are opened in a network namespace with one interface, a macvlan
// that leads to the node's: there is nothing else to bind to, and promiscuous is the macvlan only.
// On its way out through the node's interface every frame meets a program that drops what is not
// from the ring's own address, channel, rank and attempt. The socket is in a fanout group of its
// own, which the kernel never binds again. What arrives meets the socket's locked filter.
// scored-ring-guard prepares all that (../ring_guard).
//
// AF_XDP sends past the queues and programs of its own interface. On a macvlan, where it can only
// copy, its frames still pass the node's interface and the program there. It receives the frames of
// a whole queue, and a macvlan has one: so each AF_XDP socket has a namespace with a macvlan of its
// own, which the kernel takes away after the last descriptor of the socket.
#pragma once

#include "scored/rings/protocol.hpp"

namespace score::rings {

class Rings {
 public:
  // `interface` outlives this; null: never opened. `guard`: the program; null: beside this one.
  explicit Rings(const char* interface, const char* guard = nullptr)
      : interface_(interface), guard_(guard) {}

  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;
  ~Rings();

  // A ring for `request`, of which it has been seen that it cannot send anything else. -1: why not
  // is in `failure`. Otherwise that says why it is a packet ring though AF_XDP was asked for; error
  // 0: it is not. The first ring, the first after the interface has changed, and each by
  // AF_XDP take some 20 ms.
  int open(const Request& request, Failure& failure);

 private:
  // A network namespace with the rings' interface, to be closed.
  int make_space(Failure& failure);
  bool prepare(Failure& failure);
  bool open_table(Failure& failure);
  int open_packet_ring(const Request& request, Failure& failure);
  int open_inside(const Request& request, Failure& failure) const;
  int open_xdp(const Request& request, Failure& failure);
  int open_xdp_inside(const Request& request, Failure& failure) const;
  void forget();

  const char* interface_;
  const char* guard_;
  int own_ = -1;    // this process's network namespace
  int space_ = -1;  // that of packet rings; -1: not prepared
  int table_ = -1;  // bounds by socket
};

}  // namespace score::rings
