#include "scored/head/admin/permissions.hpp"

#include "scored/shared/journal/event.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace score::head {
namespace {

using proto::FrameType;
using proto::Role;

constexpr std::array kOperatorSignals = {SIGTERM, SIGKILL, SIGSTOP, SIGCONT};

// Commands of tasks on a node that is not a login node may send only these frames.
constexpr std::array kStepFrames = {
    FrameType::ClientHello, FrameType::Submit,      FrameType::Plan,     FrameType::Attach,
    FrameType::Detach,      FrameType::OutputTaken, FrameType::Input,    FrameType::Resize,
    FrameType::SignalJob,   FrameType::CancelJob,   FrameType::ListJobs, FrameType::ListNodes,
    FrameType::GetInfo};

std::string_view action_of(const Permissions::Request& request) {
  return request.action.empty() ? proto::name_of(request.type) : request.action;
}

}  // namespace

Status Permissions::check(const Peer& peer, const Request& request) {
  const Role role = request.is_greeted ? peer.role : Role::Anonymous;
  bool is_owner = false;
  if (request.job != JobId() && request.is_greeted) {
    const auto owner = queries_.owner(request.job);
    if (!owner) return owner.error();
    is_owner = *owner == peer.user;
  }
  const bool by_owner = is_owner && proto::may_send(Role::Owner, request.type);
  const std::string_view action = action_of(request);
  if (!by_owner && !proto::may_send(role, request.type)) {
    if (!request.is_greeted) return refuse(peer, request, "no_hello", "a hello must come first");
    if (proto::may_send(Role::Owner, request.type)) {
      const bool may_operator = proto::may_send(Role::Operator, request.type);
      return refuse(peer, request, "not_owner",
                    fmt::format("only its owner and {} may {} job {}",
                                may_operator ? "operators" : "root", action, request.job));
    }
    const bool is_for_operators = proto::may_send(Role::Operator, request.type);
    return refuse(peer, request, is_for_operators ? "not_operator" : "not_root",
                  fmt::format("only {} may {}", is_for_operators ? "operators" : "root", action));
  }
  if (peer.task) {
    if (auto allowed = check_task(peer, request); !allowed) return allowed;
  }
  if (is_owner || role == Role::Root) return {};
  if (request.drives) {
    return refuse(peer, request, "drives",
                  fmt::format("only its owner and root may give job {} input or be its front end; "
                              "attach without input to watch it",
                              request.job));
  }
  if (request.signal != 0 &&
      std::ranges::find(kOperatorSignals, request.signal) == kOperatorSignals.end()) {
    return refuse(peer, request, "signal",
                  fmt::format("operators may send job {} of another user only TERM, KILL, STOP and "
                              "CONT",
                              request.job));
  }
  return {};
}

// The attempt of the task is checked for each request, because a connection may outlive it.
Status Permissions::check_task(const Peer& peer, const Request& request) {
  const bool submits = request.type == FrameType::Submit || request.type == FrameType::Plan;
  const JobId job = submits ? request.inside : request.job;
  const bool is_about_job = submits || job != JobId();
  const JobId own = queries_.whole(job_of(peer.task->attempt));
  const bool is_known = std::ranges::find(kStepFrames, request.type) != kStepFrames.end() &&
                        secrets_.has_tasks(peer.task->node, peer.task->attempt) &&
                        (!is_about_job || queries_.whole(job) == own);
  if (is_known) return {};
  return refuse(
      peer, request, "steps_only",
      fmt::format("{} is not a login node: commands there may only start and control steps "
                  "of the job that they run in",
                  peer.via));
}

Error Permissions::refuse(const Peer& peer, const Request& request, std::string_view reason,
                          std::string text) {
  const std::string_view rpc = proto::name_of(request.type);
  ++denied_[{rpc, reason}];
  if (lines_.allow(runner_.now())) {
    const bool has_job = request.job != JobId();
    report(Event::CommandRefused, kv("user", peer.name), kv("uid", peer.user), kv("rpc", rpc),
           kv("action", action_of(request)),
           kv("job", has_job ? fmt::format("{}", request.job) : std::string()),
           kv("reason", reason), kv("via", peer.via), kv("suppressed", lines_.take_suppressed()));
  }
  return fail(Errc::Denied, "{}", text);
}

}  // namespace score::head
