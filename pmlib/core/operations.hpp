// Remote memory operations under way: a table in the segment. An operation is named by index and
// tag, so that a late answer or a stale id never touches a newer operation of the same entry.
#pragma once

#include "pmlib/core/segment.hpp"

#include <cerrno>
#include <cstdint>

namespace score::pm {

// 0 is none.
using OperationId = std::uint32_t;

class Operations {
 public:
  explicit Operations(const Segment& segment) : segment_(segment) {}

  // 0 if the table is full.
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

  // Ends a running operation with an errno, 0 for success. Nothing if it has ended before.
  void finish(std::uint16_t index, int error) {
    Operation& op = segment_.operation(index);
    if (op.state != static_cast<std::uint8_t>(OperationState::Running)) return;
    op.state = static_cast<std::uint8_t>(OperationState::Done);
    op.error = static_cast<std::uint8_t>(error);
  }

  // The same, asked for by rank `from`, which must be the operation's peer.
  void finish_for(std::uint32_t from, OperationId id, int error) {
    if (Operation* op = find(id); op != nullptr && op->peer == from) finish(id & 0xffff, error);
  }

  // Every running operation with `peer` ends.
  void fail_peer(std::uint32_t peer, int error) {
    for (std::uint32_t i = 0; i < segment_.geometry().operations; ++i) {
      if (segment_.operation(i).peer == peer) finish(static_cast<std::uint16_t>(i), error);
    }
  }

  // EINPROGRESS while running; else 0 or why it failed, and the id is free. EINVAL: no such one.
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

  // Null if there is no such operation.
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
