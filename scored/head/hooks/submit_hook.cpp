#include "scored/head/hooks/submit_hook.hpp"

#include "base/os/log.hpp"
#include "base/text/plain.hpp"

#include <utility>

namespace score::head {
namespace {

void log_failure(std::string_view task, const std::exception_ptr& exception) {
  log_error("Task failed", kv("task", task), kv("err", describe_exception(exception)));
}

}  // namespace

SubmitHook::SubmitHook(asio::io_context& io, Clock& clock, const HeadConfig& config)
    : config_(config), runner_(clock, {config.file, ""}), tasks_(io.get_executor(), &log_failure) {}

void SubmitHook::ask(UserId user, std::string submission, Done done) {
  const SubmitQueue::Ticket ticket = ++last_;
  waiting_.try_emplace(ticket, Waiting{user, std::move(submission), std::move(done)});
  queue_.add(user, ticket);
  start_next();
}

void SubmitHook::start_next() {
  while (running_ < kProcesses) {
    const auto ticket = queue_.next();
    if (!ticket) return;
    auto waiting = waiting_.extract(*ticket);
    ++running_;
    tasks_.spawn("run the submit hook", run(std::move(waiting.mapped())));
  }
}

asio::awaitable<void> SubmitHook::run(Waiting waiting) {
  auto ended = co_await runner_.submit(std::move(waiting.submission), config_.hooks.submit_timeout);
  --running_;
  waiting.done(answer_of(ended, waiting.user));
  start_next();
}

Result<SubmitAnswer> SubmitHook::answer_of(const Result<HookEnd>& ended, UserId user) const {
  std::string why = ended ? ended->fault : plain_text(ended.error());
  if (ended && ended->is_absent) return SubmitAnswer();  // a reload has removed it
  if (why.empty()) {
    auto answer = parse_submit_answer(ended->answer);
    if (answer) return answer;
    why = "invalid answer: " + answer.error().context();
  }
  log_warning("The submit hook failed", kv("user", user), kv("reason", why),
              kv("submission", config_.hooks.accepts_on_failure ? "accepted" : "refused"));
  if (config_.hooks.accepts_on_failure) return SubmitAnswer();
  return fail(Errc::Busy, "the submit hook of this site failed; ask the administrators: {}", why);
}

asio::awaitable<void> SubmitHook::stop() {
  waiting_.clear();
  co_await tasks_.stop();
}

}  // namespace score::head
