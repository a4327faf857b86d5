// Wraps io_uring with completions as objects. One thread uses it.
#pragma once

#include "pario/server/io/plain_io.hpp"

#include <cstdint>
#include <liburing.h>
#include <memory>

namespace score::pario {

// An object of this class waits for one result of the kernel at a time.
class Completion {
 public:
  virtual void complete(int result) = 0;

 protected:
  ~Completion() = default;
};

// Calls a function of its owner.
template <auto Function>
struct Event;

template <typename Owner, void (Owner::*Function)(int)>
struct Event<Function> final : Completion {
  explicit Event(Owner& made) : owner(made) {}

  void complete(int result) override { (owner.*Function)(result); }

  Owner& owner;
};

class Ring {
 public:
  Ring() = default;
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Opens io_uring. Where that is refused it uses threads, and returns the errno value of the
  // refusal: often EPERM or ENOSYS.
  int open(unsigned entries);

  // Uses threads.
  void open_plain() { plain_ = std::make_unique<PlainIo>(); }

  // Returns a request to fill in, for example by io_uring_prep_recv(). `completion` must live until
  // it has been called.
  io_uring_sqe* next(Completion* completion);

  // Starts all requests, waits for at least one result, at most `timeout_us` (less than 0: for
  // ever), and calls the completions of all available results. Returns an errno value; a signal is
  // not an error.
  int turn(std::int64_t timeout_us);

 private:
  int wait(std::int64_t timeout_us);
  int turn_plain(std::int64_t timeout_us);

  io_uring ring_{};
  bool is_open_ = false;
  std::unique_ptr<PlainIo> plain_;
};

}  // namespace score::pario
