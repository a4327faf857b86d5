// Two connections that are each other's peer, in memory: for tests and simulations. The same rules
// as on a socket (roles, lengths, queue limit), no kernel, and a clock that is never asked: what
// one sends the other reads as soon as the loop turns.
#pragma once

#include "proto/connection.hpp"

#include <memory>
#include <string>

namespace score::proto {

struct MemoryPair {
  std::shared_ptr<Connection> first;
  std::shared_ptr<Connection> second;
};

// `limits`: only the queue counts, deadlines are for sockets. Bytes count as queued until the other
// side has read them. The names are what peer() of the *other* end says.
MemoryPair make_memory_pair(boost::asio::any_io_executor executor, std::string first_name,
                            std::string second_name, ConnectionLimits limits = {});

}  // namespace score::proto
