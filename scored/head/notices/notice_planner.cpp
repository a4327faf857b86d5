#include "scored/head/notices/notice_planner.hpp"

#include "scored/head/notices/notice_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace score::head {
namespace {

// The most telling kind first.
constexpr std::array kOrder = {NoticeKind::TimeLimit,   NoticeKind::Fail,
                               NoticeKind::End,         NoticeKind::Requeue,
                               NoticeKind::Begin,       NoticeKind::TimeLimit90,
                               NoticeKind::TimeLimit80, NoticeKind::TimeLimit50};

}  // namespace

std::optional<NoticeKind> chosen_kind(const JobHappening& what, const NoticeChoice& choice) {
  const wire::JobStatus& job = what.job;
  if (job.step_of() != 0) return std::nullopt;
  const bool is_array = job.array_job() != 0 && job.array_job() == job.job();
  const bool is_task = job.array_job() != 0 && !is_array;
  if (is_array && choice.array_tasks) return std::nullopt;
  if (is_task && !choice.array_tasks) return std::nullopt;
  for (const NoticeKind kind : kOrder) {
    if (what.kinds.has(kind) && choice.kinds.has(kind)) return kind;
  }
  return std::nullopt;
}

bool is_wanted(const NoticeChoice& mail, const NotifyConfig& config) {
  const auto wants = [](const Webhook& webhook) {
    return (webhook.choice.kinds.bits & kJobNoticeBits) != 0;
  };
  return (!mail.kinds.empty() && config.has_mail()) || std::ranges::any_of(config.webhooks, wants);
}

std::string NoticePlanner::next_id() {
  return fmt::format("{}.{}", incarnation_.value(), ++last_);
}

std::vector<Notice> NoticePlanner::plan(const JobHappening& what, const NotifyConfig& config,
                                        WallTime now) {
  std::vector<Notice> out;
  const UserId user(what.job.user());
  const auto kind = config.has_mail() ? chosen_kind(what, what.mail) : std::nullopt;
  if (kind && check_mail_address(what.address)) {
    const NoticeHead head{*kind, next_id(), cluster_, now};
    Notice notice{NoticeChannel::Mail, {}, {config.command}, user, head.id, {}};
    if (config.sendmail.empty()) {
      notice.text = json_of(head, what.job, what.address);
    } else {
      // The address is an argument, so nothing in the message can add a recipient. "-oi" takes a
      // line with a single dot as text.
      notice.command = {config.sendmail, "-oi", "--", what.address};
      notice.text = mail_of(head, {config.from, what.address}, what.job);
    }
    out.push_back(std::move(notice));
  }
  for (const Webhook& webhook : config.webhooks) {
    const auto wanted = chosen_kind(what, webhook.choice);
    if (!wanted) continue;
    const NoticeHead head{*wanted, next_id(), cluster_, now};
    out.push_back(
        {NoticeChannel::Webhook, webhook.url, {}, user, head.id, json_of(head, what.job, "")});
  }
  return out;
}

std::vector<Notice> NoticePlanner::plan(const NodeHappening& what, const NotifyConfig& config,
                                        WallTime now) {
  std::vector<Notice> out;
  for (const Webhook& webhook : config.webhooks) {
    if (!webhook.choice.kinds.has(what.kind)) continue;
    const NoticeHead head{what.kind, next_id(), cluster_, now};
    out.push_back(
        {NoticeChannel::Webhook, webhook.url, {}, UserId(0), head.id, json_of(head, what)});
  }
  return out;
}

}  // namespace score::head
