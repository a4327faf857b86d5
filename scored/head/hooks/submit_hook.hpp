#pragma once
// SubmitHook asks the site's program about submissions. At most kProcesses run at a time; the other
// submissions wait, and their users take turns. Everything else of the head goes on meanwhile.

#include "base/async/task_group.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/hooks/submit_answer.hpp"
#include "scored/head/hooks/submit_queue.hpp"
#include "scored/shared/hooks/hook_runner.hpp"

#include <functional>
#include <map>
#include <string>

namespace score::head {

class SubmitHook {
 public:
  // Each process is two programs for a moment.
  static constexpr std::size_t kProcesses = 4;

  using Done = std::function<void(const Result<SubmitAnswer>&)>;

  // All must outlive the object; a reload changes `config`.
  SubmitHook(asio::io_context& io, Clock& clock, const HeadConfig& config);

  [[nodiscard]] bool is_set() const { return !config_.hooks.submit.empty(); }

  // Asks the hook. `done` is called later, once: with its answer, or with an acceptance or an error
  // where it fails, as the configuration says.
  void ask(UserId user, std::string submission, Done done);

  // Ends the processes. Their submissions get no answer.
  asio::awaitable<void> stop();

 private:
  struct Waiting {
    UserId user;
    std::string submission;
    Done done;
  };

  void start_next();
  asio::awaitable<void> run(Waiting waiting);
  [[nodiscard]] Result<SubmitAnswer> answer_of(const Result<HookEnd>& ended, UserId user) const;

  const HeadConfig& config_;
  HookRunner runner_;
  TaskGroup tasks_;
  SubmitQueue queue_;
  std::map<SubmitQueue::Ticket, Waiting> waiting_;
  SubmitQueue::Ticket last_ = 0;
  std::size_t running_ = 0;
};

}  // namespace score::head
