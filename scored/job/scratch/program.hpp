#pragma once
// Runs one program of Scored for a shepherd, in its own session; the program dies with the
// shepherd. Its standard error is copied to the shepherd's log, and the last line is kept.

#include "base/os/spawn.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <string>
#include <vector>

namespace score::shepherd {

class Program {
 public:
  struct Handlers {
    std::function<void()> ready;  // it has written to kReadyFd; at most once per start
    std::function<void()> ended;
  };

  static constexpr int kExtraFd = 3;
  static constexpr int kReadyFd = 4;

  // The loop must outlive this object.
  Program(EventLoop& loop, std::string name, Handlers handlers)
      : loop_(loop), name_(std::move(name)), handlers_(std::move(handlers)) {}

  ~Program() { stop(); }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Looks next to the shepherd's program, and where packages install it. Returns an empty string if
  // it is not installed.
  static std::string find(const std::string& name);

  // Starts the program. extra: a descriptor that becomes its kExtraFd, or -1. Errors: it cannot be
  // started.
  base::Status start(std::vector<std::string> arguments, int extra);
  // Sends SIGKILL; `ended` is not called.
  void stop();

  // Returns 0 if the program does not run.
  [[nodiscard]] pid_t pid() const { return pid_; }

  // Returns an empty string if the program has written nothing.
  [[nodiscard]] const std::string& last_line() const { return last_line_; }

 private:
  void on_messages();
  void on_ready();
  void on_end();
  void forget();

  EventLoop& loop_;
  std::string name_;
  Handlers handlers_;
  pid_t pid_ = 0;
  base::UniqueFd pidfd_;
  base::UniqueFd messages_;
  base::UniqueFd ready_;
  std::string text_;  // an incomplete line
  std::string last_line_;
};

}  // namespace score::shepherd
