#pragma once
// The tasks' output on its way to the node daemon: read while the window has room, kept until the
// front end has taken it, sent again after a reconnection. While an earlier frame still waits for
// the node daemon, nothing is read: the tasks wait, and what they write meanwhile becomes one
// frame.

#include "scored/job/shepherd/daemon_link.hpp"
#include "scored/job/tasks/event_loop.hpp"
#include "scored/job/tasks/output.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace score::shepherd {

class OutputSender {
 public:
  // Both must outlive it.
  OutputSender(EventLoop& loop, DaemonLink& link, OutputPump pump);

  // moved: called when output was read or taken. Errors: errno codes.
  base::Status start(std::function<void()> moved);
  // Whose output it is; before the first task is opened.
  void begin(std::uint64_t attempt, std::string node_name);

  // Where the tasks' pipes go.
  OutputPump& pump() { return pump_; }

  // A line of the shepherd's own among the rank's errors: "scored: node3: rank 5: ...".
  void note(std::uint32_t rank, const std::string& text);
  // The front end has taken so many bytes more.
  void taken(std::uint64_t bytes);
  void resend();

  // The link's queue is empty.
  void queue_emptied() { follow(); }

  // Pipes were added: read them as long as there is room.
  void watch();

  // No task is left: only what is in the pipes now is still read.
  void limit_to_present() { pump_.limit_to_present(); }

  [[nodiscard]] bool is_done() const { return pump_.is_done(); }

  // Something was sent that the front end has not taken.
  [[nodiscard]] bool is_owed() const { return !window_.held().empty(); }

 private:
  void read();
  // Watches the pipes if they may be read now.
  void follow();
  void send(const OutputChunk& chunk);

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
