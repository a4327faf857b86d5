// Runs the process that connects us with the host agent of a host: ssh, srun or flux.
#pragma once

#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/result.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace score::scout {

class Link {
 public:
  // Starts the program that `words` names, in a session of its own. Its standard error goes to the
  // file `log`. It ends with this thread. Errors: NotFound, errno codes.
  static Result<Link> start(const std::vector<std::string>& words, const std::string& log);

  [[nodiscard]] pid_t pid() const { return process_.pid; }

  // These descriptors are for poll: the output has lines, or the input has room for queued bytes.
  [[nodiscard]] int output_fd() const { return output_.get(); }

  [[nodiscard]] int input_fd() const { return input_.get(); }

  // Queues bytes and writes what fits.
  void send(std::shared_ptr<const std::string> bytes);

  void send(std::string bytes) { send(std::make_shared<const std::string>(std::move(bytes))); }

  // Writes what fits. After an error the process is about to end, so nothing more is written.
  void flush();

  [[nodiscard]] bool wants_write() const { return !queue_.empty(); }

  // Returns the next whole line, without waiting. A line that is too long is split into several.
  std::optional<std::string> next_line();

  // Ends the input of the other side, which then removes everything and ends.
  void close_input();

  // Returns the last line of its log, safe to print; "" if there is none.
  [[nodiscard]] std::string last_words() const;

 private:
  SpawnedProcess process_;
  UniqueFd input_;   // we write to it
  UniqueFd output_;  // we read from it
  std::string log_;
  std::string received_;
  std::deque<std::shared_ptr<const std::string>> queue_;
  std::size_t written_ = 0;  // bytes of the first entry in the queue
};

}  // namespace score::scout
