// Kills the tasks of an attempt and removes what is left of it. The coroutines hold the attempt;
// `parts` must outlive them.
#pragma once

#include "scored/node/attempts/attempt.hpp"

namespace score::node {

class AttemptEnd {
 public:
  explicit AttemptEnd(const AttemptParts& parts) : parts_(parts) {}

  // Sends SIGKILL to all tasks, and after kStubborn to the shepherd too. May be called again.
  void kill(const AttemptPtr& attempt);
  void kill_tasks(const Attempt& attempt);
  // Ends when nothing is left of the attempt, or gives up after kRemoveLimit.
  asio::awaitable<void> remove(AttemptPtr attempt);

 private:
  asio::awaitable<void> run_kill(AttemptPtr attempt);
  void kill_everything(const Attempt& attempt);
  [[nodiscard]] static bool is_alive(const Attempt& attempt);  // true if its shepherd is alive
  [[nodiscard]] bool is_gone(const Attempt& attempt) const;

  const AttemptParts& parts_;
};

// Asks the attempt's shepherd to send the signal to its tasks. Does nothing without a connection.
void send_signal_to_tasks(const Attempt& attempt, int signal);

}  // namespace score::node
