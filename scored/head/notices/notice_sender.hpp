#pragma once
// NoticeSender sends notices from its own bounded queues, so that neither a slow mail program nor a
// web service that never replies delays the head. Programs, files and host names are dealt with on
// separate threads. DeliveryQueue decides what is sent when.

#include "base/async/alarm.hpp"
#include "base/async/asio.hpp"
#include "base/async/blocking_calls.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/os/log.hpp"
#include "scored/head/config/notify_config.hpp"
#include "scored/head/notices/delivery_queue.hpp"
#include "scored/head/notices/notices.hpp"
#include "scored/head/notices/web_client.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace score::head {

class NoticeSender final : public NoticeOutlet {
 public:
  // All parameters must outlive the object and the tasks that start() begins. A reload changes
  // `config`.
  NoticeSender(asio::io_context& io, Clock& clock, TaskGroup& tasks, const NotifyConfig& config);

  void start();

  // ---- NoticeOutlet
  void send(Notice notice) override;

  [[nodiscard]] std::map<NoticeChannel, NoticeCounts> counts() const override { return counts_; }

 private:
  using Outcome = DeliveryQueue::Outcome;

  struct Tried {
    Outcome outcome = Outcome::Failed;
    std::string why;  // of a failure
  };

  asio::awaitable<void> run();
  void begin_due(const std::string& url, DeliveryQueue& queue);
  asio::awaitable<void> deliver(std::string url, DeliveryQueue::Delivery delivery);
  asio::awaitable<Tried> run_mail(Notice notice);
  asio::awaitable<Tried> post(Notice notice);
  asio::awaitable<Result<int>> post_to(Webhook webhook, Notice notice);
  void settle(const std::string& url, const DeliveryQueue::Delivery& delivery, const Tried& tried);
  void drop(NoticeChannel channel, std::uint64_t count);
  void forget_removed_webhooks();

  asio::io_context& io_;
  Clock& clock_;
  TaskGroup& tasks_;
  const NotifyConfig& config_;
  BlockingCalls programs_;
  BlockingCalls lookups_;
  std::map<std::string, DeliveryQueue> queues_;                     // by url; "": mail
  std::map<std::string, std::shared_ptr<TrustedIssuers>> issuers_;  // by ca_file
  std::map<NoticeChannel, NoticeCounts> counts_;
  Alarm alarm_;
  LogLimiter failures_, drops_;
};

}  // namespace score::head
