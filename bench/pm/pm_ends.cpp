#include "bench/pm/pm_ends.hpp"

#include "pm.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace score::bench {

namespace {

constexpr unsigned kWarmUp = 200;

class OpenContext {
 public:
  OpenContext(const std::string& file, int side) {
    char message[200] = "";
    const int error = pm_open_file(file.c_str(), static_cast<std::uint32_t>(side), &context_,
                                   message, sizeof message);
    if (error != 0) throw std::runtime_error(std::string(pm_strerror(error)) + " " + message);
  }

  ~OpenContext() {
    // An end must not leave before the other end has received everything.
    for (int i = 0; i < 20'000 && pm_quiet(context_) == 0; ++i) pm_progress(context_);
    pm_close(context_);
  }

  OpenContext(const OpenContext&) = delete;
  OpenContext& operator=(const OpenContext&) = delete;

  operator pm_context*() const { return context_; }

 private:
  pm_context* context_ = nullptr;
};

void check(int error) {
  if (error != 0) throw std::runtime_error(pm_strerror(error));
}

pm_message take(pm_context* context) {
  pm_message message;
  int error = 0;
  while ((error = pm_receive(context, &message)) == PM_EAGAIN) {
  }
  check(error);
  return message;
}

// Without `bytes` the message has the present contents of the buffer.
void put(pm_context* context, int to, const std::uint8_t* bytes, std::size_t size) {
  void* buffer = nullptr;
  int error = 0;
  const auto dest = static_cast<std::uint32_t>(to);
  while ((error = pm_get_send_buffer(context, dest, &buffer, size)) == PM_ENOBUFS) {
    pm_progress(context);
  }
  check(error);
  if (bytes != nullptr) std::memcpy(buffer, bytes, size);
  while ((error = pm_send(context)) == PM_ENOBUFS) pm_progress(context);
  check(error);
}

pm_statistics statistics_of(const pm_context* context) {
  pm_statistics s{};
  pm_get_statistics(context, &s, sizeof s);
  return s;
}

std::uint64_t dropped_frames(const pm_context* context) {
  const pm_statistics s = statistics_of(context);
  return s.dropped_malformed + s.dropped_foreign + s.dropped_stale + s.dropped_corrupt +
         s.dropped_strange + s.dropped_by_kernel;
}

void finish(pm_context* context, pm_op op) {
  int error = 0;
  while ((error = pm_test(context, op)) == PM_EINPROGRESS) pm_progress(context);
  check(error);
}

template <class Start>
pm_op start_op(pm_context* context, Start start) {
  pm_op op = 0;
  int error = 0;
  while ((error = start(&op)) == PM_ENOBUFS) pm_progress(context);
  check(error);
  return op;
}

}  // namespace

void pm_ping_pong(int side, Shared& shared, Amount amount, const std::string& file) {
  const OpenContext context(file, side);
  const int peer = 1 - side;
  std::vector<std::uint8_t> bytes(std::max<std::size_t>(amount.size, 64));
  pm_handle memory;
  check(pm_register(context, bytes.data(), bytes.size(), &memory));
  const bool is_large = amount.size > pm_mtu(context, static_cast<std::uint32_t>(peer));
  auto send_one = [&] {
    if (!is_large) return put(context, peer, bytes.data(), amount.size);
    finish(context, start_op(context, [&](pm_op* op) {
             return pm_send_large(context, static_cast<std::uint32_t>(peer), &memory, 0,
                                  amount.size, op);
           }));
  };
  auto take_one = [&] {
    const pm_message message = take(context);
    if (!is_large) {
      std::memcpy(bytes.data(), message.data, message.length);
    } else {
      finish(context, start_op(context, [&](pm_op* op) {
               return pm_fetch(context, &message, &memory, 0, op);
             }));
    }
    pm_release_receive_buffer(context, &message);
  };
  meet(shared, 1);
  double start = 0;
  for (unsigned i = 0; i < amount.count + kWarmUp; ++i) {
    if (i == kWarmUp) start = now_seconds();
    if (side == 0) send_one();
    take_one();
    if (side == 1) send_one();
  }
  if (side == 0) shared.seconds = now_seconds() - start;
  // The last message must be acknowledged before an end leaves.
  for (const double end = now_seconds() + 0.01; now_seconds() < end;) pm_progress(context);
}

namespace {

void stream_messages(int side, Shared& shared, pm_context* context, const PmStream& stream) {
  const Amount& amount = stream.amount;
  std::vector<std::uint8_t> bytes(std::max(amount.size, stream.memory) + amount.size);
  std::size_t at = 0;
  double start = now_seconds();
  for (unsigned i = 0; i < amount.count + stream.warm_up; ++i) {
    if (i == stream.warm_up) start = now_seconds();
    at = at + amount.size < stream.memory ? at + amount.size : 0;
    if (side == 0) {
      put(context, 1, stream.copies ? &bytes[at] : nullptr, amount.size);
      if (i % 16 == 0) pm_progress(context);
      continue;
    }
    const pm_message message = take(context);
    if (stream.copies) std::memcpy(&bytes[at], message.data, message.length);
    pm_release_receive_buffer(context, &message);
  }
  if (side == 1) shared.seconds = now_seconds() - start;
}

// Sends announced messages. Both ends keep several in flight, all from and to one buffer of a
// message's size, as the streams they are compared with.
void stream_large(int side, Shared& shared, pm_context* context, const PmStream& stream) {
  const std::size_t size = stream.amount.size;
  std::vector<std::uint8_t> bytes(size, 1);
  pm_handle memory;
  check(pm_register(context, bytes.data(), bytes.size(), &memory));
  std::vector<pm_op> running(stream.outstanding);
  meet(shared, 2);
  const double start = now_seconds();
  for (unsigned i = 0; i < stream.amount.count; ++i) {
    pm_op& op = running[i % stream.outstanding];
    if (op != 0) finish(context, op);
    if (side == 0) {
      op = start_op(context,
                    [&](pm_op* o) { return pm_send_large(context, 1, &memory, 0, size, o); });
      continue;
    }
    const pm_message message = take(context);
    op = start_op(context, [&](pm_op* o) { return pm_fetch(context, &message, &memory, 0, o); });
    pm_release_receive_buffer(context, &message);
  }
  for (const pm_op op : running) {
    if (op != 0) finish(context, op);
  }
  if (side == 1) shared.seconds = now_seconds() - start;
}

// Writes into the other end's memory.
void stream_writes(int side, Shared& shared, pm_context* context, const PmStream& stream) {
  const std::size_t size = stream.amount.size;
  std::vector<std::uint8_t> bytes(size * stream.outstanding, 1);
  pm_handle memory;
  check(pm_register(context, bytes.data(), bytes.size(), &memory));
  if (side == 1) {
    std::memcpy(shared.note, &memory, sizeof memory);
    meet(shared, 2);
    while (shared.finished.load() == 0) pm_progress(context);
    return;
  }
  meet(shared, 2);
  pm_handle remote;
  std::memcpy(&remote, shared.note, sizeof remote);
  const bool registers = stream.hit_percent >= 0;
  // For a pin-down hit each write may use the same memory, as messages do; a miss needs different
  // memory.
  const std::size_t step = registers && stream.hit_percent < 100 ? size : 0;
  if (registers) pm_set_cache(context, static_cast<unsigned>(stream.hit_percent));
  if (registers) check(pm_deregister(context, &memory));
  std::vector<pm_op> running(stream.outstanding);
  std::vector<pm_handle> memories(stream.outstanding, memory);
  double start = now_seconds();
  for (unsigned i = 0; i < stream.amount.count + stream.warm_up; ++i) {
    if (i == stream.warm_up) start = now_seconds();
    const std::size_t turn = i % running.size();
    pm_op& op = running[turn];
    if (op != 0) {
      finish(context, op);
      if (registers) check(pm_deregister(context, &memories[turn]));
    }
    if (registers) check(pm_register(context, bytes.data() + turn * step, size, &memories[turn]));
    op = start_op(context, [&](pm_op* o) {
      return pm_write(context, 1, &remote, turn * step, &memories[turn], 0, size, o);
    });
  }
  for (const pm_op op : running) {
    if (op != 0) finish(context, op);
  }
  shared.seconds = now_seconds() - start;
  shared.finished.store(1);
}

}  // namespace

void pm_stream(int side, Shared& shared, PmStream stream, const std::string& file) {
  const OpenContext context(file, side);
  shared.amount = stream.amount.size * stream.amount.count;
  meet(shared, 1);
  switch (stream.by) {
    case TransferKind::Message:
      stream_messages(side, shared, context, stream);
      break;
    case TransferKind::Large:
      stream_large(side, shared, context, stream);
      break;
    case TransferKind::Write:
      stream_writes(side, shared, context, stream);
      break;
  }
  for (const double end = now_seconds() + 0.01; now_seconds() < end;) pm_progress(context);
  if (side == 1) shared.dropped = dropped_frames(context);
  const pm_statistics s = statistics_of(context);
  shared.count[side] = {s.frames_sent, s.frames_resent, s.time_outs};
}

}  // namespace score::bench
