#include "scored/head/notices/notice_sender.hpp"

#include "base/async/timeout.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "monitor/model/settings.hpp"
#include "scored/head/notices/run_program.hpp"
#include "scored/head/notices/web_reply.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kProgramThreads = 2;
constexpr std::size_t kLookupThreads = 2;
constexpr Duration kLongestSleep = 1h;

const DeliveryRules kMailRules{shares::kMails, kProgramThreads, 4, 10s, 60s};
// One user cannot fill the queue of a webhook alone. It is the operators' service, and its queue is
// as long as that of mail.
const DeliveryRules kWebhookRules{shares::kWebhookNotices, 1, 8, 1s, 120s};

DeliveryRules rules_of(const std::string& url) {
  return url.empty() ? kMailRules : kWebhookRules;
}

// Runs the work on a thread. The thread may outlive the loop, so it holds no object of Asio.
template <class T>
asio::awaitable<T> call(asio::io_context& io, BlockingCalls& calls, std::function<T()> work) {
  using Channel = asio::experimental::channel<void(boost::system::error_code)>;
  const auto result = std::make_shared<std::optional<T>>();
  const auto done = std::make_shared<Channel>(io, 1);
  calls.run([result, work = std::move(work)] { result->emplace(work()); },
            [waiting = std::weak_ptr<Channel>(done)] {
              const auto channel = waiting.lock();
              if (channel) channel->try_send(boost::system::error_code());
            });
  co_await done->async_receive(asio::use_awaitable);
  co_return std::move(**result);
}

struct Prepared {
  std::shared_ptr<TrustedIssuers> issuers;
  std::string token;
  std::vector<asio::ip::tcp::endpoint> endpoints;
};

Result<Prepared> prepare(const Webhook& webhook, std::shared_ptr<TrustedIssuers> issuers) {
  Prepared out;
  out.issuers = std::move(issuers);
  if (webhook.address.has_tls && !out.issuers) {
    auto loaded = load_issuers(webhook.ca_file);
    if (!loaded) return loaded.error();
    out.issuers = *std::move(loaded);
  }
  if (!webhook.token_file.empty()) {
    auto token = monitor::load_token(webhook.token_file);
    if (!token) return token.error().with_context("token_file");
    out.token = *std::move(token);
  }
  auto endpoints = resolve(webhook.address);
  if (!endpoints) return endpoints.error();
  out.endpoints = *std::move(endpoints);
  return out;
}

}  // namespace

NoticeSender::NoticeSender(asio::io_context& io, Clock& clock, TaskGroup& tasks,
                           const NotifyConfig& config)
    : io_(io),
      clock_(clock),
      tasks_(tasks),
      config_(config),
      programs_(io, kProgramThreads),
      lookups_(io, kLookupThreads),
      alarm_(io, clock),
      failures_(1.0 / 10, 5),
      drops_(1.0 / 60, 1) {}

void NoticeSender::start() {
  tasks_.spawn("send notices", run());
}

void NoticeSender::send(Notice notice) {
  const NoticeChannel channel = notice.channel;
  auto [queue, is_new] = queues_.try_emplace(notice.url, rules_of(notice.url));
  const std::size_t dropped = queue->second.add(std::move(notice), clock_.now());
  if (dropped > 0) drop(channel, dropped);
  alarm_.again();
}

void NoticeSender::drop(NoticeChannel channel, std::uint64_t count) {
  counts_[channel].dropped += count;
  if (!drops_.allow(clock_.now())) return;
  log_warning("Dropped the oldest notice, because too many wait to be sent",
              kv("channel", channel == NoticeChannel::Mail ? "mail" : "webhook"),
              kv("suppressed", drops_.take_suppressed()));
}

asio::awaitable<void> NoticeSender::run() {
  for (;;) {
    forget_removed_webhooks();
    TimePoint next = clock_.now() + kLongestSleep;
    for (auto& [url, queue] : queues_) {
      begin_due(url, queue);
      if (const auto due = queue.next_time()) next = std::min(next, *due);
    }
    co_await alarm_.sleep_until(next);
  }
}

void NoticeSender::begin_due(const std::string& url, DeliveryQueue& queue) {
  while (auto delivery = queue.take(clock_.now())) {
    tasks_.spawn("send notice", deliver(url, *std::move(delivery)));
  }
}

// A queue is erased when nothing is being sent from it.
void NoticeSender::forget_removed_webhooks() {
  std::erase_if(queues_, [&](const auto& entry) {
    const auto is_it = [&](const Webhook& webhook) { return webhook.url == entry.first; };
    const bool is_configured =
        entry.first.empty() ? config_.has_mail() : std::ranges::any_of(config_.webhooks, is_it);
    if (is_configured || entry.second.is_sending()) return false;
    const auto channel = entry.first.empty() ? NoticeChannel::Mail : NoticeChannel::Webhook;
    if (entry.second.size() > 0) drop(channel, entry.second.size());
    return true;
  });
}

// An exception other than the cancellation by the daemon's stop must not end the daemon.
asio::awaitable<void> NoticeSender::deliver(std::string url, DeliveryQueue::Delivery delivery) {
  Tried tried;
  try {
    auto work = url.empty() ? run_mail(delivery.notice) : post(delivery.notice);
    tried = co_await std::move(work);
  } catch (const boost::system::system_error& error) {
    if (error.code() == asio::error::operation_aborted) throw;
    tried.why = error.what();
  } catch (const std::exception& error) {
    tried.why = error.what();
  }
  settle(url, delivery, tried);
  alarm_.again();
}

void NoticeSender::settle(const std::string& url, const DeliveryQueue::Delivery& delivery,
                          const Tried& tried) {
  const auto queue = queues_.find(url);
  if (queue == queues_.end()) return;
  const auto verdict = queue->second.settle(delivery.key, tried.outcome, clock_.now());
  NoticeCounts& counts = counts_[delivery.notice.channel];
  if (verdict == DeliveryQueue::Verdict::Sent) ++counts.sent;
  if (verdict == DeliveryQueue::Verdict::GivenUp) ++counts.failed;
  if (verdict == DeliveryQueue::Verdict::Sent || !failures_.allow(clock_.now())) return;
  const bool is_given_up = verdict == DeliveryQueue::Verdict::GivenUp;
  log_warning(is_given_up ? "Cannot send notice; given up" : "Cannot send notice; retrying",
              kv("to", url.empty() ? delivery.notice.command.back() : url),
              kv("notice", delivery.notice.id), kv("err", tried.why),
              kv("suppressed", failures_.take_suppressed()));
}

asio::awaitable<NoticeSender::Tried> NoticeSender::run_mail(Notice notice) {
  struct Ran {
    Status status;
    int exit_code = 0;
  };

  ProgramRun program;
  program.path = notice.command.front();
  program.arguments.assign(notice.command.begin() + 1, notice.command.end());
  program.input = std::move(notice.text);
  program.timeout = config_.timeout;
  std::function<Ran()> work = [program = std::move(program)] {
    Ran ran;
    ran.status = run_program(program, ran.exit_code);
    return ran;
  };
  auto running = call<Ran>(io_, programs_, std::move(work));
  const Ran ran = co_await std::move(running);
  Tried tried;
  tried.outcome = ran.status                        ? Outcome::Sent
                  : is_worth_a_retry(ran.exit_code) ? Outcome::Failed
                                                    : Outcome::Refused;
  if (!ran.status) tried.why = plain_text(ran.status.error());
  co_return tried;
}

asio::awaitable<Result<int>> NoticeSender::post_to(Webhook webhook, Notice notice) {
  std::function<Result<Prepared>()> work = [webhook, known = issuers_[webhook.ca_file]] {
    return prepare(webhook, known);
  };
  auto preparing = call<Result<Prepared>>(io_, lookups_, std::move(work));
  auto prepared = co_await std::move(preparing);
  if (!prepared) co_return prepared.error();
  if (prepared->issuers) issuers_[webhook.ca_file] = prepared->issuers;
  std::string request = web_request(webhook.address, notice, prepared->token);
  auto sending = send_request(webhook.address, std::move(prepared->endpoints),
                              std::move(prepared->issuers), std::move(request));
  auto status = co_await std::move(sending);
  if (!status) issuers_.erase(webhook.ca_file);  // the file may have been renewed
  co_return status;
}

asio::awaitable<NoticeSender::Tried> NoticeSender::post(Notice notice) {
  Tried tried;
  const auto webhook = std::ranges::find(config_.webhooks, notice.url, &Webhook::url);
  if (webhook == config_.webhooks.end()) {
    tried.outcome = Outcome::Refused;
    tried.why = "the configuration has no such webhook any more";
    co_return tried;
  }
  auto work = post_to(*webhook, std::move(notice));
  const auto status = co_await with_timeout(clock_, config_.timeout, std::move(work));
  if (!status) {
    tried.why = status.error().is(Errc::Timeout)
                    ? fmt::format("no reply within {}", format_duration(config_.timeout))
                    : plain_text(status.error());
    co_return tried;
  }
  const bool is_accepted = *status >= 200 && *status < 300;
  tried.outcome = is_accepted                       ? Outcome::Sent
                  : is_worth_a_retry_after(*status) ? Outcome::Failed
                                                    : Outcome::Refused;
  tried.why = fmt::format("the service replied with status {}", *status);
  co_return tried;
}

}  // namespace score::head
