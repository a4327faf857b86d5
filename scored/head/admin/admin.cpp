// A command goes through six steps: permit, check, store, prepare, audit, effect. It is stored
// before it is carried out, so a confirmed change is never lost and a change that cannot be stored
// never happens. The cluster keeps running while the command is being stored, so prepare() asks the
// cluster again: the job may have ended. The audit comes between prepare and effect, so in every
// record it precedes the consequences.
#include "scored/head/admin/admin.hpp"

#include "base/limits.hpp"
#include "scored/head/store/settings.hpp"

#include <utility>

namespace score::head {
namespace {

constexpr std::size_t kMaxWaiting = 256;  // commands per job, or for the cluster

}  // namespace

Admin::Admin(HeadContext& head, Parts parts)
    : head_(head),
      parts_(std::move(parts)),
      permissions_(head.runner, parts_.queries, parts_.secrets),
      cluster_commands_(head, {parts_.config, parts_.networks, parts_.shares, parts_.reservations,
                               parts_.daemon.read_configuration}),
      job_commands_(head,
                    {parts_.config, parts_.life, parts_.submissions, parts_.arrays, permissions_}),
      change_commands_(head, {parts_.submissions, parts_.arrays, parts_.waiting, parts_.shares,
                              parts_.reservations}) {}

void Admin::execute(const Peer& peer, const AdminCommand& command, const Reply& reply) {
  if (auto permitted = permissions_.check(peer, request_of(command)); !permitted) {
    return reply(permitted.error());
  }
  const JobId line = job_of(command);
  std::deque<Asked>& asked = asked_[line];
  if (asked.size() >= kMaxWaiting) {
    return reply(fail(Errc::Busy, "too many changes at once; try again"));
  }
  asked.push_back({peer, command, reply});
  auto* reserve = std::get_if<ReserveNodes>(&asked.back().command);
  if (reserve != nullptr && reserve->wanted.name().empty()) {
    reserve->wanted.set_name(parts_.reservations.free_name());
  }
  if (asked.size() == 1) begin(line);
}

// ---- order of commands --------------------------------------------------------------------------

void Admin::begin(JobId line) {
  const Asked& asked = asked_.at(line).front();
  auto changes = std::visit([&](const auto& one) { return handler_of(one).check(asked.peer, one); },
                            asked.command);
  if (!changes) return finish(line, changes.error());
  head_.commits.confirm(std::move(*changes), [this, line](const Result<LogReceipt>& logged) {
    if (logged) return finish(line, logged);
    store_as_it_is(asked_.at(line).front().command, logged.error());
    finish(line, logged.error().with_context("cannot store the change; nothing was changed"));
  });
}

void Admin::finish(JobId line, const Result<LogReceipt>& logged) {
  const auto found = asked_.find(line);
  const Asked asked = std::move(found->second.front());
  logged ? carry_out(asked, *logged) : asked.reply(logged.error());
  found->second.pop_front();
  if (!found->second.empty()) return begin(line);
  asked_.erase(found);
}

void Admin::carry_out(const Asked& asked, const LogReceipt& receipt) {
  const auto effect = std::visit(
      [&](const auto& one) { return handler_of(one).prepare(asked.peer, one); }, asked.command);
  if (!effect) {
    store_as_it_is(asked.command, {});
    return asked.reply(effect.error());
  }
  audit(head_, asked.peer, asked.command);
  (*effect)();
  answer(asked, receipt);
}

void Admin::store_as_it_is(const AdminCommand& command, const Status& stored) {
  const auto* reserve = std::get_if<ReserveNodes>(&command);
  if (reserve != nullptr && stored) {
    return head_.commits.add(reserve_setting(reserve->wanted.name(), std::nullopt));
  }
  if (const auto* change = std::get_if<ChangeJob>(&command)) {
    if (stored) change_commands_.restore(change->job);
    return;
  }
  const auto* control = std::get_if<ControlJob>(&command);
  if (control != nullptr) job_commands_.restore(*control, stored);
}

// ---- answer -----------------------------------------------------------------------------------

void Admin::answer(const Asked& asked, const LogReceipt& receipt) {
  const auto confirm = [reply = asked.reply, receipt](std::string text) {
    reply(Logged<std::string>{std::move(text), receipt});
  };
  const auto* cancel = std::get_if<CancelJob>(&asked.command);
  if (cancel != nullptr && cancel->wait) {
    return job_commands_.when_recorded(*cancel, [confirm] { confirm({}); });
  }
  if (std::holds_alternative<ShutDown>(asked.command)) {
    shutdown_reply_ = [confirm] { confirm(reply_of(ShutDown{})); };
    return check_shutdown();
  }
  if (const auto* change = std::get_if<ChangeJob>(&asked.command)) {
    return confirm(change_commands_.reply_of(*change));
  }
  confirm(reply_of(asked.command));
}

// ---- shutdown ---------------------------------------------------------------------------------

Result<Changes> Admin::check(const Peer&, const ShutDown&) {
  return Changes();
}

Result<Effect> Admin::prepare(const Peer&, const ShutDown&) {
  return [this] {
    parts_.submissions.close();
    shutdown_deadline_ = now() + limits::kStopDeadline;
    head_.alarm.at(shutdown_deadline_);
    for (const JobId id : head_.jobs.active_ids()) parts_.life.kill(id, gang::EndCause::Shutdown);
  };
}

void Admin::check_shutdown() {
  const auto finish = [this] {
    if (!shutdown_reply_) return;
    shutdown_deadline_.reset();
    std::exchange(shutdown_reply_, nullptr)();
    parts_.daemon.exit();
  };
  if (!shutdown_reply_) return;
  if (shutdown_deadline_ && *shutdown_deadline_ <= now()) return finish();
  if (head_.jobs.active() == 0) head_.commits.after([finish](const Status&) { finish(); });
}

}  // namespace score::head
