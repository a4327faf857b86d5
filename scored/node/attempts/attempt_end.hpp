// Kills the tasks of an attempt and removes what is left of it. Coroutines hold the attempt;
// `parts` outlives them.
#pragma once

#include "scored/node/attempts/attempt.hpp"

namespace score::node {

class AttemptEnd {
 public:
  explicit AttemptEnd(const AttemptParts& parts) : parts_(parts) {}

  // SIGKILL to all tasks; after kStubborn to the shepherd too. May be repeated.
  void kill(const AttemptPtr& attempt);
  void kill_tasks(const Attempt& attempt);
  // Ends when nothing is left of the attempt, or after kRemoveLimit.
  asio::awaitable<void> remove(AttemptPtr attempt);

 private:
  asio::awaitable<void> run_kill(AttemptPtr attempt);
  void kill_everything(const Attempt& attempt);
  [[nodiscard]] static bool is_alive(const Attempt& attempt);  // its shepherd
  [[nodiscard]] bool is_gone(const Attempt& attempt) const;

  const AttemptParts& parts_;
};

// To the attempt's shepherd, for its tasks.
void send_signal_to_tasks(const Attempt& attempt, int signal);

}  // namespace score::node
