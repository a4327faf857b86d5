// A single loop sends while there is room, receives, and checks which transfers have ended. It
// never waits in a send, because a rank that waits for room must make room for the other ranks.
#include "bench/npb/pm_communicator.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace score::npb {

namespace {

constexpr std::int64_t kRetryUs = 200;  // between checks for room or for the end of a transfer
constexpr int kLeaveTurns = 5000;       // at most a second

}  // namespace

PmCommunicator::PmCommunicator(pm::Context& context) : context_(context), sources_(size()) {}

PmCommunicator::~PmCommunicator() {
  try {
    barrier();
  } catch (const std::exception&) {
    return;  // a rank has died, so there is no one to wait for
  }
  for (int i = 0; i < kLeaveTurns && pm_quiet(raw()) == 0; ++i) pm_wait(raw(), kRetryUs);
}

void PmCommunicator::transfer(std::span<const Outgoing> out, std::span<const Incoming> in) {
  for (const Incoming& part : in) {
    if (part.from == rank() || part.bytes.empty()) continue;
    sources_[part.from].wanted = part.bytes;
    missing_bytes_ += part.bytes.size();
  }
  for (const Outgoing& part : out) {
    if (part.to != rank() && !part.bytes.empty()) sending_.push_back({part});
  }
  for (const Incoming& part : in) take_early(sources_[part.from]);
  while (!sending_.empty() || missing_bytes_ > 0 || !operations_.empty()) {
    const bool did_send = send_some();
    const bool did_receive = receive_some();
    if (end_operations() || did_send || did_receive) continue;
    pm_wait(raw(), sending_.empty() && operations_.empty() ? -1 : kRetryUs);
  }
}

// ---- sending ------------------------------------------------------------------------------------

// Sends as much as possible of each part, so that one slow rank does not delay the others.
bool PmCommunicator::send_some() {
  bool did = false;
  for (Sending& sending : sending_) did = send_part(sending) || did;
  std::erase_if(sending_, [](const Sending& s) { return s.sent == s.part.bytes.size(); });
  return did;
}

bool PmCommunicator::send_part(Sending& sending) {
  const Outgoing& part = sending.part;
  if (part.bytes.size() >= kLargeBytes) {
    const bool started = start_operation(part.bytes, [&](const pm_handle& memory, pm_op& op) {
      return pm_send_large(raw(), part.to, &memory, 0, part.bytes.size(), &op);
    });
    if (started) sending.sent = part.bytes.size();
    return started;
  }
  const std::size_t before = sending.sent;
  while (sending.sent < part.bytes.size()) {
    const auto rest = part.bytes.subspan(sending.sent);
    const auto piece = rest.first(std::min<std::size_t>(rest.size(), context_.mtu(part.to)));
    void* buffer = nullptr;
    int error = pm_get_send_buffer(raw(), part.to, &buffer, piece.size());
    if (error == PM_ENOBUFS) break;
    pm::check(error);
    std::memcpy(buffer, piece.data(), piece.size());
    error = pm_send(raw());
    if (error == PM_ENOBUFS) {
      pm_cancel(raw());
      break;
    }
    pm::check(error);
    sending.sent += piece.size();
  }
  return sending.sent > before;
}

// Registers `memory` and starts an operation with it. Returns false if there is no room for one
// more now.
bool PmCommunicator::start_operation(std::span<const std::byte> memory, auto start) {
  Operation operation{};
  // PM reads sent memory and writes fetched memory; the registration itself changes nothing.
  const int error =
      pm_register(raw(), const_cast<std::byte*>(memory.data()), memory.size(), &operation.memory);
  if (error == ENOSPC) return false;
  pm::check(error);
  const int started = start(operation.memory, operation.op);
  if (started == PM_SUCCESS) {
    operations_.push_back(operation);
    return true;
  }
  pm_deregister(raw(), &operation.memory);
  if (started != PM_ENOBUFS) throw pm::Error(started);
  return false;
}

bool PmCommunicator::end_operations() {
  const auto has_ended = [this](const Operation& operation) {
    const int state = pm_test(raw(), operation.op);
    if (state == PM_EINPROGRESS) return false;
    pm::check(state);
    while (pm_deregister(raw(), &operation.memory) == PM_EBUSY) pm_progress(raw());
    return true;
  };
  return std::erase_if(operations_, has_ended) > 0;
}

// ---- receiving ----------------------------------------------------------------------------------

bool PmCommunicator::receive_some() {
  bool did = false;
  for (pm_message message;; did = true) {
    const int error = pm_receive(raw(), &message);
    if (error == PM_EAGAIN) return did;
    pm::check(error);
    Source& source = sources_[message.source];
    const bool is_large = (message.flags & PM_LARGE) != 0;
    if (!source.early.empty() || source.wanted.empty()) {
      const auto* bytes = static_cast<const std::byte*>(message.data);
      source.early.push_back({});
      source.early.back().large = message;
      if (is_large) continue;  // keeps its buffer
      source.early.back().bytes.assign(bytes, bytes + message.length);
    } else if (is_large) {
      fetch(source, message);
      continue;
    } else {
      accept(source, {static_cast<const std::byte*>(message.data), message.length});
    }
    pm_release_receive_buffer(raw(), &message);
  }
}

void PmCommunicator::accept(Source& source, std::span<const std::byte> bytes) {
  if (bytes.size() > source.wanted.size())
    throw std::runtime_error("a message is longer than expected");
  std::memcpy(source.wanted.data(), bytes.data(), bytes.size());
  source.wanted = source.wanted.subspan(bytes.size());
  missing_bytes_ -= bytes.size();
  if (source.wanted.empty()) count_part();
}

void PmCommunicator::fetch(Source& source, const pm_message& message) {
  if (message.length != source.wanted.size())
    throw std::runtime_error("a message has an unexpected length");
  const auto start = [&](const pm_handle& memory, pm_op& op) {
    return pm_fetch(raw(), &message, &memory, 0, &op);
  };
  while (!start_operation(source.wanted, start)) {
    if (!end_operations()) pm_wait(raw(), kRetryUs);
  }
  pm_release_receive_buffer(raw(), &message);
  missing_bytes_ -= source.wanted.size();
  source.wanted = {};
  count_part();
}

void PmCommunicator::take_early(Source& source) {
  while (!source.early.empty() && !source.wanted.empty()) {
    const Early early = std::move(source.early.front());
    source.early.pop_front();
    if (early.bytes.empty()) {
      fetch(source, early.large);
    } else {
      accept(source, early.bytes);
    }
  }
}

}  // namespace score::npb
