#pragma once
// Forwards the tasks' output. It is read in chunks from their pipes as long as the window has room,
// and kept until the front end has taken it. A task that floods its output waits in write(2), so
// the shepherd's memory stays bounded.

#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "proto/common.pb.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace score::shepherd {

struct TaskOutputChunk {
  std::uint32_t rank = 0;
  wire::Stream stream = wire::STDOUT;
  std::string data;
  std::uint64_t offset = 0;  // of data's first byte in all output of the node; set by the window
};

// Holds the chunks that were sent and not taken yet, in the order in which they were read. This
// class is pure.
class OutputWindow {
 public:
  explicit OutputWindow(std::size_t bytes) : limit_(bytes) {}

  [[nodiscard]] std::size_t room() const { return held_ < limit_ ? limit_ - held_ : 0; }

  // Adds a chunk. A short note of the shepherd itself may exceed the limit.
  const TaskOutputChunk& push(TaskOutputChunk chunk);
  // Removes the oldest `bytes`, which the front end has taken. If there are fewer, all are removed.
  void taken(std::uint64_t bytes);

  // Returns the chunks that must be sent again after a reconnection.
  [[nodiscard]] const std::deque<TaskOutputChunk>& held() const { return chunks_; }

 private:
  std::size_t limit_;
  std::size_t held_ = 0;
  std::uint64_t end_ = 0;  // offset of the next byte
  std::deque<TaskOutputChunk> chunks_;
};

// Decides when the pipes are read again, so that many small writes become few frames. Each frame
// wakes the shepherd, the daemons and the front end. This class is pure.
class ReadPace {
 public:
  static constexpr base::Duration kPause = std::chrono::milliseconds(1);
  // A read of this many bytes justifies its frame, because stdio writes at least this much of
  // buffered output.
  static constexpr std::size_t kMuch = 4 * 1024;

  // Returns how long to wait after a read at `now` that returned this many bytes. Output after a
  // pause, and large output, never waits.
  base::Duration read(std::size_t bytes, base::TimePoint now);

 private:
  base::TimePoint last_{};  // last small read
};

// Groups the read ends of all tasks' pipes behind one descriptor, so that a full window stops all
// of them with one call.
class OutputPump {
 public:
  // The sink is called with each chunk read.
  using Sink = std::function<void(TaskOutputChunk chunk)>;

  static base::Result<OutputPump> create();

  // The descriptor becomes readable when a pipe has data; watch it while there is room.
  [[nodiscard]] int descriptor() const { return epoll_.get(); }

  // Adds a non-blocking end of a pipe or of a terminal master. Errors: errno codes.
  base::Status add(std::uint32_t rank, wire::Stream stream, base::UniqueFd fd);
  // Reads at most one chunk of each pipe that is ready, `room` bytes in total. Closes pipes at
  // their end of file. Returns the number of bytes read.
  std::size_t pump(std::size_t room, const Sink& sink);
  // Call this when no task is left: the bytes that are in the pipes now are still read, then the
  // pipes are closed, even if a different process holds them open.
  void limit_to_present();

  [[nodiscard]] bool is_done() const { return open_ == 0; }

 private:
  struct Source {
    base::UniqueFd fd;  // empty: closed
    std::uint32_t rank;
    wire::Stream stream;
    std::optional<std::size_t> left;  // bytes that may still be read
  };

  explicit OutputPump(base::UniqueFd epoll) : epoll_(std::move(epoll)) {}

  // Returns how many bytes of `room` were used.
  std::size_t read_chunk(Source& source, std::size_t room, const Sink& sink);
  void end(Source& source);

  base::UniqueFd epoll_;
  std::vector<Source> sources_;
  std::size_t open_ = 0;
};

}  // namespace score::shepherd
