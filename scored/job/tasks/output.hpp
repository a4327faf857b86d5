#pragma once
// The tasks' output: read in chunks from their pipes as long as the window has room, kept until the
// front end took it. A task that floods its output waits in write(2); the shepherd never grows.

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

struct OutputChunk {
  std::uint32_t rank = 0;
  wire::Stream stream = wire::STDOUT;
  std::string data;
  std::uint64_t offset = 0;  // of data's first byte in all output of the node; set by the window
};

// What was sent and not taken yet, in the order it was read. Pure.
class OutputWindow {
 public:
  explicit OutputWindow(std::size_t bytes) : limit_(bytes) {}

  [[nodiscard]] std::size_t room() const { return held_ < limit_ ? limit_ - held_ : 0; }

  // May pass the limit by one short note of the shepherd's own.
  const OutputChunk& push(OutputChunk chunk);
  // The oldest `bytes` were taken by the front end. More than there are: all.
  void taken(std::uint64_t bytes);

  // To be sent again after a reconnection.
  [[nodiscard]] const std::deque<OutputChunk>& held() const { return chunks_; }

 private:
  std::size_t limit_;
  std::size_t held_ = 0;
  std::uint64_t end_ = 0;  // offset of the next byte
  std::deque<OutputChunk> chunks_;
};

// When the pipes are read again, so that many small writes become few frames: each frame costs the
// shepherd, the daemons and the front end a wake-up. Pure.
class ReadPace {
 public:
  static constexpr base::Duration kPause = std::chrono::milliseconds(1);
  // A reading of so much is worth its frame: stdio writes no less of what it buffers.
  static constexpr std::size_t kMuch = 4 * 1024;

  // How long to wait after a reading at `now` that gave so many bytes. Output after a pause, and
  // much output, never waits.
  base::Duration read(std::size_t bytes, base::TimePoint now);

 private:
  base::TimePoint last_{};  // reading of little
};

// The reading ends of all tasks' pipes behind one descriptor, so that a full window stops all of
// them with one call.
class OutputPump {
 public:
  // Called with each chunk read.
  using Sink = std::function<void(OutputChunk chunk)>;

  static base::Result<OutputPump> create();

  // Becomes readable when a pipe has something; watch it while there is room.
  [[nodiscard]] int descriptor() const { return epoll_.get(); }

  // A pipe's or a terminal master's end, non-blocking. Errors: errno codes.
  base::Status add(std::uint32_t rank, wire::Stream stream, base::UniqueFd fd);
  // Reads at most one chunk of each pipe that is ready, `room` bytes in all. Ends those at their
  // end. Gives the bytes read.
  std::size_t pump(std::size_t room, const Sink& sink);
  // No task is left: what is in the pipes now is still read, then they are closed, even if another
  // process holds them open.
  void limit_to_present();

  [[nodiscard]] bool is_done() const { return open_ == 0; }

 private:
  struct Source {
    base::UniqueFd fd;  // empty: ended
    std::uint32_t rank;
    wire::Stream stream;
    std::optional<std::size_t> left;  // bytes that may still come
  };

  explicit OutputPump(base::UniqueFd epoll) : epoll_(std::move(epoll)) {}

  // Bytes used of the room.
  std::size_t read_chunk(Source& source, std::size_t room, const Sink& sink);
  void end(Source& source);

  base::UniqueFd epoll_;
  std::vector<Source> sources_;
  std::size_t open_ = 0;
};

}  // namespace score::shepherd
