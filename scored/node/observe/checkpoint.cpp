// This module is tested by tests/integration/run/test_checkpoint.py.
#include "scored/node/observe/checkpoint.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "proto/frames/parse.hpp"

#include <algorithm>
#include <utility>

namespace score::node {

namespace {

constexpr Duration kShortestPause = std::chrono::milliseconds{1};
constexpr Duration kLongestPause = std::chrono::milliseconds{50};
constexpr Duration kForTheReply = std::chrono::milliseconds{100};  // of the reply
constexpr Duration kLongestOrder = std::chrono::hours{1};

wire::CheckpointReply failure(std::string reason) {
  wire::CheckpointReply reply;
  reply.set_reason(std::move(reason));
  return reply;
}

// criu may take seconds or minutes; a look costs at most a few percent more than that.
Duration pause_after(Duration passed) {
  return std::clamp(passed / 32, kShortestPause, kLongestPause);
}

asio::awaitable<wire::CheckpointReply> carry_out(StacksParts parts, AttemptPtr attempt,
                                                 wire::CheckpointOrder order) {
  const Duration limit = std::clamp(Duration(order.limit_ns()), kForTheReply, kLongestOrder);
  const TimePoint began = parts.clock.now();
  const TimePoint deadline = began + limit - kForTheReply;
  while (order.step() == wire::HOLD && !attempt->is_removed && !is_stopped(parts, *attempt)) {
    if (parts.clock.now() >= deadline) co_return failure("it was not stopped in time");
    co_await parts.clock.sleep_for(kShortestPause);
  }
  wire::ShepherdCheckpoint message;
  message.set_tag(order.tag());
  message.set_step(order.step());
  message.set_set(order.set());
  message.set_submission(order.submission());
  message.set_limit_ns((deadline - parts.clock.now()).count());
  attempt->checkpointed.reset();
  proto::send(*attempt->connection, message);
  while (!attempt->is_removed && parts.clock.now() < deadline) {
    if (attempt->checkpointed && attempt->checkpointed->tag() == order.tag()) {
      const auto answer = std::exchange(attempt->checkpointed, std::nullopt);
      auto reply = failure(escape_terminal(answer->reason(), limits::kMaxErrorTextBytes));
      reply.set_image_bytes(answer->image_bytes());
      reply.set_directory(answer->directory());
      co_return reply;
    }
    co_await parts.clock.sleep_for(pause_after(parts.clock.now() - began));
  }
  co_return failure(attempt->is_removed ? "it has ended" : "its shepherd did not answer in time");
}

}  // namespace

asio::awaitable<void> answer_checkpoint(StacksParts parts, wire::CheckpointOrder order) {
  const auto attempt = parts.attempts.find(AttemptId(order.attempt()));
  wire::CheckpointReply reply;
  if (!attempt || !attempt->connection) {
    reply = failure("it does not run here");
  } else if (attempt->checkpoint == 0 && !attempt->has_own_ids) {
    reply = failure("it was not started with --checkpoint");
  } else {
    reply = co_await carry_out(parts, attempt, order);
  }
  reply.set_tag(order.tag());
  if (parts.head.is_greeted()) parts.head.send(reply);
}

Result<asio::awaitable<void>> answer_about_attempt(const StacksParts& parts,
                                                   const proto::InFrame& frame) {
  if (frame.type == proto::FrameType::StacksRequest) {
    auto request = proto::parse<wire::StacksRequest>(frame);
    if (!request) return request.error();
    return answer_stacks(parts, *std::move(request));
  }
  auto order = proto::parse<wire::CheckpointOrder>(frame);
  if (!order) return order.error();
  return answer_checkpoint(parts, *std::move(order));
}

}  // namespace score::node
