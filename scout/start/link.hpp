// The process that connects us with the keeper of a host: ssh, srun or flux.
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
  // Starts the program that `words` names, in a session of its own; what it prints on standard
  // error goes to the file `log`. It ends with this thread. Errors: NotFound, errno codes.
  static Result<Link> start(const std::vector<std::string>& words, const std::string& log);

  [[nodiscard]] pid_t pid() const { return process_.pid; }

  // For poll: lines have come; there is room for what send() has queued.
  [[nodiscard]] int output_fd() const { return output_.get(); }

  [[nodiscard]] int input_fd() const { return input_.get(); }

  // Queues bytes and writes what fits.
  void send(std::shared_ptr<const std::string> bytes);

  void send(std::string bytes) { send(std::make_shared<const std::string>(std::move(bytes))); }

  // Writes what fits. After an error the process is about to end: nothing more is written.
  void flush();

  [[nodiscard]] bool wants_write() const { return !queue_.empty(); }

  // The next whole line, without waiting. Lines that are too long are cut into several.
  std::optional<std::string> next_line();

  // No more input for the other side: it removes everything and ends.
  void close_input();
  void kill();

  // The last line of its log, fit to be printed; "" if there is none.
  [[nodiscard]] std::string last_words() const;

 private:
  SpawnedProcess process_;
  UniqueFd input_;   // we write
  UniqueFd output_;  // we read
  std::string log_;
  std::string received_;
  std::deque<std::shared_ptr<const std::string>> queue_;
  std::size_t written_ = 0;  // of the first in the queue
};

}  // namespace score::scout
