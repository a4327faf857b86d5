// Operations is the table of pending remote memory operations in the segment. An operation id holds
// index and tag, so a late answer or a stale id never touches a newer operation of the same entry.
#pragma once

#include "pmlib/core/segment.hpp"

#include <cerrno>
#include <cstdint>

namespace score::pm {

// The value 0 means no operation.
using OperationId = std::uint32_t;

class Operations {
 public:
  explicit Operations(const Segment& segment) : segment_(segment) {}

  // Returns 0 if the table is full.
  OperationId start(std::uint32_t peer) {
    for (std::uint32_t i = 0; i < segment_.geometry().operations; ++i) {
      Operation& op = segment_.operation(i);
      if (op.state != static_cast<std::uint8_t>(OperationState::Free)) continue;
      op.state = static_cast<std::uint8_t>(OperationState::Running);
      op.error = 0;
      op.peer = peer;
      op.then_end = 0;
      ++segment_.header().live_operations;
      return std::uint32_t{op.tag} << 16 | i;
    }
    return 0;
  }

  // Ends a running operation with an errno, 0 for success. Does nothing if it has already ended.
  void finish(std::uint16_t index, int error) {
    Operation& op = segment_.operation(index);
    if (op.state != static_cast<std::uint8_t>(OperationState::Running)) return;
    op.state = static_cast<std::uint8_t>(OperationState::Done);
    op.error = static_cast<std::uint8_t>(error);
  }

  // Does the same for rank `from`, which must be the operation's peer.
  void finish_for(std::uint32_t from, OperationId id, int error) {
    if (Operation* op = find(id); op != nullptr && op->peer == from) finish(id & 0xffff, error);
  }

  // Ends every running operation with `peer`.
  void fail_peer(std::uint32_t peer, int error) {
    for (std::uint32_t i = 0; i < segment_.geometry().operations; ++i) {
      if (segment_.operation(i).peer == peer) finish(static_cast<std::uint16_t>(i), error);
    }
  }

  // Returns EINPROGRESS while it runs. Returns EINVAL if there is no such operation.
  // Otherwise returns 0 or the errno of the failure, and frees the id.
  int test(OperationId id) {
    Operation* op = find(id);
    if (op == nullptr || op->state == static_cast<std::uint8_t>(OperationState::Free)) {
      return EINVAL;
    }
    if (op->state == static_cast<std::uint8_t>(OperationState::Running)) return EINPROGRESS;
    op->state = static_cast<std::uint8_t>(OperationState::Free);
    op->tag = op->tag == UINT16_MAX ? std::uint16_t{1} : static_cast<std::uint16_t>(op->tag + 1);
    --segment_.header().live_operations;
    return op->error;
  }

  bool is_running(OperationId id) const {
    const Operation* op = find(id);
    return op != nullptr && op->state == static_cast<std::uint8_t>(OperationState::Running);
  }

  // Returns null if there is no such operation.
  Operation* find(OperationId id) const {
    const std::uint32_t index = id & 0xffff;
    if (index >= segment_.geometry().operations) return nullptr;
    Operation& op = segment_.operation(index);
    return op.tag == id >> 16 ? &op : nullptr;
  }

 private:
  Segment segment_;
};

}  // namespace score::pm
