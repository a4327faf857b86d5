#pragma once
// One program of Scored that runs beside a shepherd, in a session of its own; it dies with it. What
// it writes to standard error goes to the shepherd's log, and the last line is kept.

#include "base/os/spawn.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <string>
#include <vector>

namespace score::shepherd {

class Program {
 public:
  struct Handlers {
    std::function<void()> ready;  // it has written to kReadyFd; at most once for each start
    std::function<void()> ended;
  };

  static constexpr int kExtraFd = 3;
  static constexpr int kReadyFd = 4;

  // The loop must outlive it.
  Program(EventLoop& loop, std::string name, Handlers handlers)
      : loop_(loop), name_(std::move(name)), handlers_(std::move(handlers)) {}

  ~Program() { stop(); }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Beside the shepherd's program, or where packages put it. Empty: it is not installed.
  static std::string find(const std::string& name);

  // extra: -1, or what becomes its descriptor kExtraFd. Errors: it cannot be started.
  base::Status start(std::vector<std::string> arguments, int extra);
  // SIGKILL; `ended` is not called.
  void stop();

  // 0: it does not run.
  [[nodiscard]] pid_t pid() const { return pid_; }

  // Empty: it has written nothing.
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
  std::string text_;  // not yet a line
  std::string last_line_;
};

}  // namespace score::shepherd
