#pragma once
// Forwards the front end's input to the tasks that read it, with one buffer and a position per
// reader. The sender respects a window of limits::kIoWindowBytes; bytes count as taken when every
// reader has received them or has closed its end.

#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::shepherd {

class InputFeeder {
 public:
  // The callback `taken` is called with the number of bytes that left the buffer. The loop must
  // outlive the feeder.
  InputFeeder(EventLoop& loop, std::function<void(std::uint64_t)> taken)
      : loop_(loop), taken_(std::move(taken)) {}

  ~InputFeeder();
  InputFeeder(const InputFeeder&) = delete;
  InputFeeder& operator=(const InputFeeder&) = delete;

  // Adds a reader's pipe or terminal master, non-blocking. The reader gets the buffered input and
  // all that follows. At the end of input a pipe is closed, and a terminal gets its end-of-file
  // character.
  base::Status add(base::UniqueFd fd, bool is_terminal);
  // Call this when all readers are added: from then on input may be dropped if no reader is left.
  void complete();
  // Adds input. Errors: TooLarge (beyond the window), WrongState (after the end).
  base::Status push(std::string_view data, bool eof);
  // Call this when no task reads any more; buffered input counts as taken.
  void close_all();

 private:
  struct Reader {
    base::UniqueFd fd;  // empty: closed
    std::uint64_t position = 0;
    bool is_terminal = false;
  };

  void on_ready(std::size_t index, std::uint32_t events);
  void write_to(Reader& reader);
  void finish(Reader& reader);
  void close(Reader& reader);
  void settle();

  EventLoop& loop_;
  std::function<void(std::uint64_t)> taken_;
  std::vector<Reader> readers_;
  std::string buffer_;
  std::uint64_t start_ = 0;  // position of buffer_'s first byte
  bool ended_ = false;
  bool complete_ = false;
};

}  // namespace score::shepherd
