// The control socket of a living cluster: one line asked, one line answered ("ok ..." or "error
// ...").
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <deque>
#include <functional>
#include <string>

namespace score::scout {

// Answers who asks and waits for nobody: who says nothing, or only half a line, keeps one of a few
// places until others need it. Thread: its owner's.
class ControlDoor {
 public:
  using Answer = std::function<std::string(const std::string&)>;

  // Errors: errno codes.
  static Result<ControlDoor> open(const std::string& path);

  // Readable when serve() has something to do.
  [[nodiscard]] int fd() const { return ready_.get(); }

  // Lets in who waits, if its user is ours or root, and answers every line that is whole.
  void serve(const Answer& answer);

 private:
  struct Visitor {
    UniqueFd socket;
    std::string line;
  };

  ControlDoor(UniqueFd listener, UniqueFd ready);
  void let_in();
  // True if the visitor has gone or has its answer.
  static bool hear(Visitor& visitor, const Answer& answer);

  UniqueFd listener_;
  UniqueFd ready_;                // epoll: the listener and every visitor
  std::deque<Visitor> visitors_;  // the oldest first
};

// Asks. Gives what follows "ok". Errors: the supervisor's text; errno codes.
Result<std::string> ask_control(const std::string& path, const std::string& request);

}  // namespace score::scout
