#pragma once
// Runs one program of Scored for a shepherd, in the cgroup of the helpers and its own session; the
// program dies with the shepherd. Its standard error is copied to the shepherd's log, and the last
// line is kept.

#include "base/os/spawn.hpp"
#include "scored/job/scratch/helper_client.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace score::shepherd {

class Program {
 public:
  struct Handlers {
    std::function<void()> ready;  // it has written to kReadyFd; at most once per start
    std::function<void()> ended;  // or could not be started
  };

  static constexpr int kExtraFd = 3;
  static constexpr int kReadyFd = 4;

  // Loop and helpers must outlive this object.
  Program(EventLoop& loop, HelperClient& helpers, std::string name, Handlers handlers)
      : loop_(loop), helpers_(helpers), name_(std::move(name)), handlers_(std::move(handlers)) {}

  ~Program() { stop(); }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Looks next to the shepherd's program, and where packages install it. Returns an empty string if
  // it is not installed.
  static std::string find(const std::string& name);

  // Starts the program. extra: a descriptor that becomes its kExtraFd, or -1. Errors: it cannot be
  // started; `ended` is then not called.
  base::Status start(std::vector<std::string> arguments, int extra);
  // Sends SIGKILL and waits for the end, for at most 2 s; `ended` is not called.
  void stop();

  // Returns 0 if the program does not run, or not yet.
  [[nodiscard]] pid_t pid() const { return pid_; }

  // Returns an empty string if the program has written nothing.
  [[nodiscard]] const std::string& last_line() const { return last_line_; }

 private:
  void on_started(base::Result<base::SpawnedProcess> started);
  void on_messages();
  void on_ready();
  void on_end();
  void forget();

  EventLoop& loop_;
  HelperClient& helpers_;
  std::string name_;
  Handlers handlers_;
  std::shared_ptr<bool> awaited_;  // false: kill the program when it has been started
  pid_t pid_ = 0;
  base::UniqueFd pidfd_;
  base::UniqueFd messages_;
  base::UniqueFd ready_;
  std::string text_;  // an incomplete line
  std::string last_line_;
};

}  // namespace score::shepherd
