#include "scored/head/notices/notices.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

constexpr std::uint32_t kPartBits = (1U << static_cast<unsigned>(NoticeKind::TimeLimit90)) |
                                    (1U << static_cast<unsigned>(NoticeKind::TimeLimit80)) |
                                    (1U << static_cast<unsigned>(NoticeKind::TimeLimit50));

wire::NoticeRequest unpack(const SharedText& request) {
  wire::NoticeRequest out;
  if (!request.empty() && !out.ParseFromString(request.str())) out.Clear();
  return out;
}

NoticeChoice choice_of(const wire::NoticeRequest& request) {
  return {{request.kinds() & kJobNoticeBits}, request.array_tasks()};
}

}  // namespace

bool Notices::is_wanted(const SharedText& request) const {
  return head::is_wanted(choice_of(unpack(request)), head_.config.notify);
}

bool Notices::wants_limit_parts(const SharedText& request) const {
  const NotifyConfig& config = head_.config.notify;
  const bool in_mail = config.has_mail() && (unpack(request).kinds() & kPartBits) != 0;
  return in_mail || std::ranges::any_of(config.webhooks, [](const Webhook& webhook) {
           return (webhook.choice.kinds.bits & kPartBits) != 0;
         });
}

bool Notices::lacks_mail(const SharedText& request) const {
  return !head_.config.notify.has_mail() && unpack(request).kinds() != 0;
}

std::optional<JobHappening> Notices::describe(const SharedText& request, NoticeKinds kinds,
                                              wire::JobStatus job) const {
  if (!is_wanted(request)) return std::nullopt;
  const wire::NoticeRequest asked = unpack(request);
  JobHappening what;
  what.kinds = kinds;
  what.mail = choice_of(asked);
  what.address = asked.address().empty() ? job.user_name() : asked.address();
  what.job = std::move(job);
  return what;
}

void Notices::when_stored(JobHappening what) {
  head_.commits.after([this, what = std::move(what)](const Status& done) {
    if (done) stored(what);
  });
}

void Notices::stored(const JobHappening& what) {
  send(planner_.plan(what, head_.config.notify, head_.runner.wall()));
}

void Notices::node_changed(NodeId node, const gang::NodeView& view) {
  std::optional<NoticeKind> kind;
  if (view.state == gang::NodeState::Down && down_.insert(node).second) kind = NoticeKind::NodeDown;
  if (view.state == gang::NodeState::Up && down_.erase(node) > 0) kind = NoticeKind::NodeUp;
  if (!kind) return;
  const NodeHappening what{*kind, head_.links.name(node), view.down_reason};
  send(planner_.plan(what, head_.config.notify, head_.runner.wall()));
}

std::map<NoticeChannel, NoticeCounts> Notices::counts() const {
  return outlet_ == nullptr ? std::map<NoticeChannel, NoticeCounts>() : outlet_->counts();
}

void Notices::send(std::vector<Notice> notices) {
  if (outlet_ == nullptr) return;
  for (Notice& notice : notices) outlet_->send(std::move(notice));
}

Status check_notice_request(const wire::NoticeRequest& request) {
  if ((request.kinds() & ~kJobNoticeBits) != 0) {
    return fail(Errc::Malformed, "unknown kinds of notices: {:#x}", request.kinds());
  }
  if (request.address().empty()) return {};
  if (auto sound = check_mail_address(request.address()); !sound) {
    return sound.error().with_context("--mail-user");
  }
  return {};
}

}  // namespace score::head
