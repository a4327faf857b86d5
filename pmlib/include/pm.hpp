// This header wraps pm.h for C++ with owning objects and spans only. Errors that a correct program
// does not cause are exceptions; a temporary lack of buffers or messages is an empty result.
#pragma once

#include "pm.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace pm {

class Error : public std::runtime_error {
 public:
  explicit Error(int code, const std::string& what = {})
      : std::runtime_error(what.empty() ? pm_strerror(code) : what), code_(code) {}

  int code() const { return code_; }

 private:
  int code_;
};

inline void check(int code) {
  if (code != PM_SUCCESS) throw Error(code);
}

class Context;

// A Message is a received message. Its buffer is released with the object, which must not outlive
// the context.
class Message {
 public:
  Message(pm_context* context, const pm_message& message) : context_(context), message_(message) {}

  Message(Message&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), message_(other.message_) {}

  Message& operator=(Message&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(message_, other.message_);
    return *this;
  }

  ~Message() {
    if (context_ != nullptr) pm_release_receive_buffer(context_, &message_);
  }

  std::uint32_t source() const { return message_.source; }

  bool is_large() const { return (message_.flags & PM_LARGE) != 0; }

  bool is_datagram() const { return (message_.flags & PM_DATAGRAM) != 0; }

  std::uint64_t length() const { return message_.length; }

  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(message_.data), is_large() ? 0 : message_.length};
  }

  const pm_message& raw() const { return message_; }

 private:
  pm_context* context_;
  pm_message message_;
};

// A Region is registered memory. The registration ends with the object, which must not outlive the
// context.
class Region {
 public:
  Region(pm_context* context, std::span<std::byte> memory) : context_(context) {
    check(pm_register(context_, memory.data(), memory.size(), &handle_));
  }

  Region(Region&& other) noexcept
      : context_(std::exchange(other.context_, nullptr)), handle_(other.handle_) {}

  Region& operator=(Region&&) = delete;

  ~Region() {
    while (context_ != nullptr && pm_deregister(context_, &handle_) == PM_EBUSY) {
      pm_progress(context_);
    }
  }

  const pm_handle& handle() const { return handle_; }

 private:
  pm_context* context_;
  pm_handle handle_{};
};

class Context {
 public:
  // Opens the context given to this process; see pm_open().
  Context() {
    pm_context* context = nullptr;
    check(pm_open(&context));
    context_.reset(context);
  }

  Context(const std::string& address_file, std::uint32_t rank) {
    char message[256] = "";
    pm_context* context = nullptr;
    const int error = pm_open_file(address_file.c_str(), rank, &context, message, sizeof message);
    if (error != PM_SUCCESS) throw Error(error, message);
    context_.reset(context);
  }

  pm_context* raw() const { return context_.get(); }

  std::uint32_t self() const { return pm_self(raw()); }

  std::uint32_t size() const { return pm_size(raw()); }

  std::uint32_t mtu(std::uint32_t dest) const { return pm_mtu(raw(), dest); }

  // Copies and sends the message; waits for a buffer.
  void send(std::uint32_t dest, std::span<const std::byte> bytes) {
    check(pm_send_message(raw(), dest, bytes.data(), bytes.size()));
  }

  // Sends a datagram to each of `dests`. Returns false if there was no room for some of them.
  bool send_datagram(std::span<const std::uint32_t> dests, std::span<const std::byte> bytes) {
    const int error =
        pm_send_datagram(raw(), dests.data(), dests.size(), bytes.data(), bytes.size());
    if (error != PM_EAGAIN) check(error);
    return error == PM_SUCCESS;
  }

  // Calls `build(std::span<std::byte>)` to make the message in place. Returns false if no buffer is
  // free.
  template <class Build>
  bool try_send(std::uint32_t dest, std::size_t length, Build build) {
    void* buffer = nullptr;
    const int error = pm_get_send_buffer(raw(), dest, &buffer, length);
    if (error == PM_ENOBUFS) return false;
    check(error);
    build(std::span(static_cast<std::byte*>(buffer), length));
    for (int sent = pm_send(raw()); sent != PM_SUCCESS; sent = pm_send(raw())) {
      if (sent != PM_ENOBUFS) throw Error(sent);
      pm_wait(raw(), 200);
    }
    return true;
  }

  // Returns nothing if no message is there. Throws Error(PM_EPEER) once for each rank that died.
  std::optional<Message> receive() {
    pm_message message;
    const int error = pm_receive(raw(), &message);
    if (error == PM_EAGAIN) return std::nullopt;
    check(error);
    return Message(raw(), message);
  }

  // Waits for the next message.
  Message receive_wait() {
    for (;;) {
      if (auto message = receive()) return std::move(*message);
      pm_wait(raw(), -1);
    }
  }

  Region register_memory(std::span<std::byte> memory) { return Region(raw(), memory); }

  // Waits until `op` has ended.
  void finish(pm_op op) {
    int state = pm_test(raw(), op);
    for (; state == PM_EINPROGRESS; state = pm_test(raw(), op)) pm_wait(raw(), 1000);
    check(state);
  }

 private:
  struct Close {
    void operator()(pm_context* context) const { pm_close(context); }
  };

  std::unique_ptr<pm_context, Close> context_;
};

}  // namespace pm
