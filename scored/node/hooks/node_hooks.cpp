#include "scored/node/hooks/node_hooks.hpp"

#include "base/os/log.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/plain.hpp"
#include "proto/frames/parse.hpp"

#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace score::node {

namespace {

constexpr std::size_t kMostReports = 256;
// Attempts are numbered from 0, and a job has far fewer.
constexpr std::uint64_t kNoAttempt = kAttemptsPerJob - 1;
// A node that starts many jobs at once is not flooded with hooks; systemd accepts 64 of them.
constexpr unsigned kAtOnce = 16;
constexpr Duration kWaitPause = std::chrono::milliseconds{20};

// Copies a text that fits, with a NUL behind it; a longer one is left out.
template <std::size_t Size>
void copy_text(std::string_view text, char (&field)[Size]) {
  if (text.size() >= Size) return;
  std::memcpy(field, text.data(), text.size());
}

// The specification of an allocation names only the node of its task; its environment names all.
std::string node_list_of(const wire::LaunchSpec& launch) {
  constexpr std::string_view kName = "SCORE_NODELIST=";
  for (const std::string& entry : launch.job_env()) {
    if (entry.starts_with(kName)) return entry.substr(kName.size());
  }
  return launch.nodelist();
}

std::uint32_t tasks_here(const base::PlacedTasks& placed) {
  return placed.node_index < placed.tasks_on_node.size() ? placed.tasks_on_node[placed.node_index]
                                                         : 0;
}

}  // namespace

NodeHooks::NodeHooks(Parts parts, Settings settings)
    : parts_(parts),
      settings_(std::move(settings)),
      runner_(parts.clock, settings_.place),
      records_(settings_.directory) {
  records_.load();
}

std::optional<hooks::HookRequest> NodeHooks::request_for(const base::PlacedTasks& placed,
                                                         std::string_view spec) const {
  if (!settings_.hooks.has_job_hooks()) return std::nullopt;
  wire::LaunchSpec launch;
  const bool is_read = launch.ParseFromArray(spec.data(), static_cast<int>(spec.size()));
  if (!is_read || launch.scout()) return std::nullopt;
  const bool is_step = !launch.step().empty();
  const JobId job = is_step ? JobId(launch.job()) : job_of(placed.attempt);
  const AttemptId attempt = is_step ? make_attempt(job, kNoAttempt) : placed.attempt;
  hooks::HookRequest request;
  request.user = placed.user.value();
  request.job = job.value();
  request.attempt = attempt.value();
  request.tasks = tasks_here(placed);
  const std::string list = node_list_of(launch);
  const auto nodes = expand_hostlist(list);
  request.nodes = static_cast<std::uint32_t>(nodes ? nodes->size() : placed.tasks_on_node.size());
  copy_text(settings_.node_name, request.node);
  copy_text(list, request.node_list);
  return request;
}

asio::awaitable<Status> NodeHooks::prolog(hooks::HookRequest request,
                                          std::shared_ptr<HookHandle> handle) {
  const AttemptId attempt(request.attempt);
  while (records_.has_other(attempt) && !handle->is_cancelled())
    co_await parts_.clock.sleep_for(kWaitPause);
  if (auto stored = records_.add(request); !stored) co_return stored;
  running_.insert(attempt);
  auto ended = co_await run(Hook::Prolog, request, handle);
  running_.erase(attempt);
  if (ended && ended->fault.empty()) co_return Status();
  const std::string why = ended ? ended->fault : plain_text(ended.error());
  if (!handle->is_cancelled()) report(Hook::Prolog, request, why);
  co_return fail(Errc::WrongState, "prolog failed: {}", why);
}

std::vector<AttemptId> NodeHooks::due() const {
  std::vector<AttemptId> attempts = records_.all();
  std::erase_if(attempts, [this](AttemptId one) { return is_of_allocation(*records_.find(one)); });
  return attempts;
}

// The job's own attempt stays on its node as long as its steps, so a record of it is enough.
asio::awaitable<Status> NodeHooks::enter_step(hooks::HookRequest request,
                                              std::shared_ptr<HookHandle> handle) {
  const JobId job(request.job);
  const AttemptId attempt(request.attempt);
  while ((running_.contains(attempt) || ended_.contains(job)) && !handle->is_cancelled())
    co_await parts_.clock.sleep_for(kWaitPause);
  ++steps_[job];
  if (records_.has_other(attempt) || records_.find(attempt) != nullptr) co_return Status();
  auto passed = co_await prolog(request, std::move(handle));
  if (!passed) ended_.insert(job);
  co_return passed;
}

void NodeHooks::leave_step(JobId allocation) {
  const auto found = steps_.find(allocation);
  if (found == steps_.end()) return;
  if (--found->second > 0) return;
  steps_.erase(found);
  if (ended_.contains(allocation)) end_allocation(allocation);
}

void NodeHooks::forgotten(AttemptId attempt) {
  const JobId job = job_of(attempt);
  if (records_.find(make_attempt(job, kNoAttempt)) == nullptr) return;
  ended_.insert(job);
  if (!steps_.contains(job)) end_allocation(job);
}

void NodeHooks::end_allocation(JobId job) {
  parts_.tasks.spawn("run an epilog", epilog(make_attempt(job, kNoAttempt)));
}

asio::awaitable<void> NodeHooks::epilog(AttemptId attempt) {
  while (running_.contains(attempt)) co_await parts_.clock.sleep_for(kWaitPause);
  const hooks::HookRequest* const due = records_.find(attempt);
  if (due == nullptr) co_return;
  const hooks::HookRequest request = *due;
  running_.insert(attempt);
  auto ended = co_await run(Hook::Epilog, request, nullptr);
  running_.erase(attempt);
  records_.remove(attempt);
  if (is_of_allocation(request)) ended_.erase(JobId(request.job));
  const std::string why = ended ? ended->fault : plain_text(ended.error());
  if (!why.empty()) report(Hook::Epilog, request, why);
}

asio::awaitable<Result<HookEnd>> NodeHooks::run(Hook hook, hooks::HookRequest request,
                                                std::shared_ptr<HookHandle> handle) {
  if (settings_.hooks.path_of(hook).empty()) co_return HookEnd();
  request.hook = static_cast<std::uint32_t>(hook);
  while (active_ >= kAtOnce && !(handle && handle->is_cancelled()))
    co_await parts_.clock.sleep_for(kWaitPause);
  ++active_;
  auto ended = co_await runner_.run(request, settings_.hooks.timeout_of(hook), std::move(handle));
  --active_;
  if (ended && ended->is_absent) ended->fault = "it is not in the configuration of scored-hooks";
  co_return ended;
}

asio::awaitable<void> NodeHooks::check_health() {
  if (settings_.hooks.health.empty()) co_return;
  hooks::HookRequest request;
  copy_text(settings_.node_name, request.node);
  for (;;) {
    auto ended = co_await run(Hook::Health, request, nullptr);
    const std::string why = ended ? ended->fault : plain_text(ended.error());
    if (!why.empty() || reports_pass_) report(Hook::Health, request, why);
    reports_pass_ = !why.empty();
    co_await parts_.clock.sleep_for(settings_.hooks.health_every);
  }
}

// A later report of the health check replaces an earlier one. The oldest reports are dropped if the
// head is away for very long.
void NodeHooks::report(Hook hook, const hooks::HookRequest& request, const std::string& fault) {
  if (!fault.empty()) {
    log_warning("A hook of the site failed", kv("hook", name_of(hook)), kv("job", request.job),
                kv("reason", fault));
  }
  if (hook == Hook::Health) {
    std::erase_if(reports_, [](const auto& entry) {
      return entry.second.hook() == static_cast<std::uint32_t>(Hook::Health);
    });
  }
  if (reports_.size() >= kMostReports) reports_.erase(reports_.begin());
  wire::HookReport& made = reports_[++last_report_];
  made.set_number(last_report_);
  made.set_hook(static_cast<std::uint32_t>(hook));
  made.set_attempt(request.attempt);
  made.set_reason(fault);
  if (takes_reports_ && parts_.head.is_greeted()) parts_.head.send(made);
}

// The head may have forgotten allocations while there was no connection.
void NodeHooks::welcomed(bool takes_reports, bool is_idle) {
  for (const AttemptId attempt : is_idle ? records_.all() : std::vector<AttemptId>()) {
    if (is_of_allocation(*records_.find(attempt))) forgotten(attempt);
  }
  takes_reports_ = takes_reports;
  reports_pass_ = true;
  if (!takes_reports) return;
  for (const auto& [number, report] : reports_) parts_.head.send(report);
}

void NodeHooks::taken(const proto::InFrame& frame) {
  const auto message = proto::parse<wire::HookReportTaken>(frame);
  if (!message) return parts_.head.drop(message.error().message());
  reports_.erase(message->number());
}

bool is_of_allocation(const hooks::HookRequest& request) {
  return AttemptId(request.attempt) == make_attempt(JobId(request.job), kNoAttempt);
}

HookRunner::Place hook_place(const std::string& launcher_dir, std::string config) {
  const std::string socket = launcher_dir + "/hooks.sock";

  struct stat info {};

  const bool is_of_root = ::stat(launcher_dir.c_str(), &info) == 0 && info.st_uid == 0;
  const bool has_socket = ::stat(socket.c_str(), &info) == 0;
  const bool by_root = is_of_root && (has_socket || geteuid() != 0);
  return {std::move(config), by_root ? socket : std::string()};
}

}  // namespace score::node
