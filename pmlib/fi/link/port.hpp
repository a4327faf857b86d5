// This is the interface between an endpoint of libfabric and its link.
#pragma once

#include "pmlib/fi/link/mpi_call.hpp"
#include "pmlib/fi/link/wire.hpp"
#include "pmlib/fi/peers/peers.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace score::pm::fi {

// Receives bytes that arrive in this process in Fragments.
class Inflow {
 public:
  // Returns where the next `count` bytes go in one piece; null if add() has to take them.
  virtual std::byte* place(std::size_t count) = 0;
  // The link calls this when the bytes are in place; they are not the last ones.
  virtual void placed(std::size_t count) = 0;
  // `left` more bytes will come. If it is 0, these were the last, and the link no longer uses the
  // object.
  virtual void add(std::span<const std::byte> bytes, std::size_t left) = 0;
  // The link calls this when the peer has died, and does not use the object afterwards. No more
  // bytes will come.
  virtual void fail(int error) = 0;

 protected:
  ~Inflow() = default;
};

// Holds a message that has arrived for a port.
struct IncomingMessage {
  Header header;
  PortName from;
  std::span<const std::byte> bytes;  // behind the header
};

// Describes a posted receive that names one message.
struct Awaited {
  std::int64_t peer = -1;  // -1: any
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;  // bits of the tag
  std::size_t bytes = 0;     // length of its buffer
};

// Represents an endpoint to its link.
class Port {
 public:
  // Takes a Send or Tagged message. The returned inflow takes the `left` bytes in the Fragments of
  // a kSplit message.
  virtual Inflow* on_message(const IncomingMessage& in, std::size_t& left) = 0;
  virtual void on_access(const IncomingMessage& in) = 0;  // Write, WriteLarge, Read, Atomic
  // Does what on_message() does for a message without flags, or with kSmallData alone, if a receive
  // takes it at once and whole. Otherwise returns false and does nothing.
  virtual bool take_fast(const IncomingMessage& in) = 0;
  // Describes the oldest unmatched receive with a tag that `filter` accepts. Returns false if there
  // is none.
  virtual bool find_oldest(const TagFilter& filter, Awaited& awaited) const = 0;

 protected:
  ~Port() = default;
};

}  // namespace score::pm::fi
