#include "scored/head/streams/job_relays.hpp"

#include "base/time.hpp"
#include "proto/node.pb.h"

namespace score::head {
namespace {

// ChargedFrame counts as long as a connection has the frame in its queue.
struct ChargedFrame {
  std::shared_ptr<const std::string> bytes;
  std::unique_ptr<ByteShare> share;
};

}  // namespace

void JobRelays::ask(const Sender& from, std::size_t bytes) {
  const std::size_t largest = proto::find_rule(proto::FrameType::JobRelay)->max_bytes;
  auto& mine = reserved_[{from.attempt, from.node}];
  mine.reset();
  auto budget = budgets_.of(from.user);
  if (bytes > largest || !budget->may_add(bytes)) {
    reserved_.erase({from.attempt, from.node});
    return;
  }
  mine = std::make_unique<ByteShare>(std::move(budget), bytes);
  wire::JobRelay answer;
  answer.set_attempt(from.attempt.value());
  answer.set_may_send(true);
  links_.send(from.node, answer);
}

void JobRelays::send(const Sender& from, NodeId to, std::shared_ptr<const std::string> frame) {
  const std::size_t bytes = frame->size();
  auto charged = std::make_shared<ChargedFrame>();
  charged->bytes = std::move(frame);
  if (auto reserved = reserved_.extract({from.attempt, from.node}))
    charged->share = std::move(reserved.mapped());
  auto budget = budgets_.of(from.user);
  const bool has_room = charged->share != nullptr || budget->may_add(bytes);
  if (!has_room || links_.queued_bytes(to) + bytes > kMaxOfLink) return report_drop(from, to);
  if (charged->share == nullptr) charged->share = std::make_unique<ByteShare>(std::move(budget));
  charged->share->set(bytes);
  links_.send_shared(to, {charged, charged->bytes.get()});
}

void JobRelays::report_drop(const Sender& from, NodeId to) {
  if (!limiter_.allow(monotonic_now())) return;
  log_notice("Dropped a message between the nodes of a job: too many of its user wait",
             kv("job", job_of(from.attempt)), kv("node", links_.name(to)),
             kv("suppressed", limiter_.take_suppressed()));
}

void JobRelays::close(AttemptId attempt) {
  std::erase_if(reserved_, [&](const auto& entry) { return entry.first.first == attempt; });
}

void JobRelays::link_lost(NodeId node) {
  std::erase_if(reserved_, [&](const auto& entry) { return entry.first.second == node; });
}

std::size_t JobRelays::used(UserId user) {
  return budgets_.of(user)->used();
}

}  // namespace score::head
