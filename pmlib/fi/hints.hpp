// States the limits and capabilities of the provider, and compares an application's hints with
// them.
#pragma once

#include "pmlib/fi/objects/objects.hpp"

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

namespace score::pm::fi {

// The highest bit marks values that a provider defines (FI_PROV_SPECIFIC of libfabric 1).
constexpr std::uint32_t kAddressFormat = (1U << 31) | 0x504d;  // "PM"
constexpr std::uint32_t kProtocol = (1U << 31) | 0x504d;
constexpr std::size_t kMostBytes = std::size_t{1} << 40;  // of a message or an access
constexpr std::size_t kQueueSize = 4096;
constexpr std::size_t kMostObjects = 1024;  // per kind and domain; reported, not enforced
constexpr std::size_t kMostRegions = 1 << 20;
// An atomic operation is one message, so all its bytes are ordered. They must therefore fit into
// the shortest messages of any link.
constexpr std::size_t kAtomicBytes = kMinPayload - sizeof(Header) - sizeof(AtomicExtra);

constexpr std::uint64_t kTransmitCaps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_FENCE;
constexpr std::uint64_t kReceiveCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV |
                                       FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV |
                                       FI_DIRECTED_RECV | FI_SOURCE | FI_SOURCE_ERR | FI_RMA_EVENT;
constexpr std::uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr std::uint64_t kCaps = kTransmitCaps | kReceiveCaps | kDomainCaps;
// These capabilities cost time, so an endpoint has them only if the application asks for them.
constexpr std::uint64_t kCapsOnDemand = FI_FENCE | FI_SOURCE_ERR;

// Every endpoint has these orders.
constexpr std::uint64_t kOrder = FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_ATOMIC_RAR |
                                 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW |
                                 FI_ORDER_RMA_RAR;
// An endpoint has these orders only if the application asks for them: later operations then wait
// for an announced write (endpoint/order.hpp).
constexpr std::uint64_t kOrderOnDemand =
    FI_ORDER_SAW | FI_ORDER_WAW | FI_ORDER_RAW | FI_ORDER_RMA_WAW | FI_ORDER_RMA_RAW;

// Returns how many bytes may be injected: 32 KB, or less if an MPI in this process begins its own
// protocol for long messages earlier. MPICH injects as much as the provider accepts, and expects no
// more than its threshold in a message that it did not announce.
std::size_t inject_bytes();

// Returns the number of bytes up to which accesses of `kinds` are ordered under `order`, an
// endpoint's msg_order.
std::size_t ordered_bytes(std::uint64_t order, std::uint64_t kinds);
constexpr std::uint64_t kReadAfterWrite = FI_ORDER_RAW | FI_ORDER_RMA_RAW;
constexpr std::uint64_t kWriteAfterWrite = FI_ORDER_WAW | FI_ORDER_RMA_WAW;

// Returns true if the provider can meet all hints.
bool fits(const fi_info& hints);

}  // namespace score::pm::fi
