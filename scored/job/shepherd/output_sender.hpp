#pragma once
// Sends the tasks' output to the node daemon. It reads while the window has room, keeps the data
// until the front end has taken it, and sends it again after a reconnection. While an earlier frame
// still waits for the node daemon, nothing is read: the tasks wait, and their output of that time
// becomes one frame.

#include "scored/job/shepherd/daemon_link.hpp"
#include "scored/job/tasks/event_loop.hpp"
#include "scored/job/tasks/output.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace score::shepherd {

class OutputSender {
 public:
  // The loop and the link must outlive this object.
  OutputSender(EventLoop& loop, DaemonLink& link, OutputPump pump);

  // Starts reading. moved: called when output was read or taken. Errors: errno codes.
  base::Status start(std::function<void()> moved);
  // Sets the attempt and node of the output. Call it before the first task is opened.
  void begin(std::uint64_t attempt, std::string node_name);

  // Returns the pump that reads the tasks' pipes.
  OutputPump& pump() { return pump_; }

  // Adds a line of the shepherd to the rank's error output: "scored: node3: rank 5: ...".
  void note(std::uint32_t rank, const std::string& text);
  // Records that the front end has taken this many more bytes.
  void taken(std::uint64_t bytes);
  void resend();

  // Call this when the link's queue is empty.
  void queue_emptied() { follow(); }

  // Call this when pipes were added. They are read as long as there is room.
  void watch();

  // Call this when no task is left: only the bytes that are in the pipes now are still read.
  void limit_to_present() { pump_.limit_to_present(); }

  [[nodiscard]] bool is_done() const { return pump_.is_done(); }

  // Returns true if output was sent that the front end has not taken.
  [[nodiscard]] bool is_owed() const { return !window_.held().empty(); }

 private:
  void read();
  // Watches the pipes if they may be read now.
  void follow();
  void send(const TaskOutputChunk& chunk);

  EventLoop& loop_;
  DaemonLink& link_;
  OutputPump pump_;
  OutputWindow window_;
  ReadPace pace_;
  bool is_pausing_ = false;
  std::uint64_t attempt_ = 0;
  std::string node_name_;
  std::function<void()> moved_;
};

}  // namespace score::shepherd
