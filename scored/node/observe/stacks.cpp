// This module is tested by tests/integration/gang/test_stacks.py.
#include "scored/node/observe/stacks.hpp"

#include "base/limits.hpp"
#include "base/os/cgroup.hpp"
#include "base/text/index_set.hpp"
#include "pmlib/core/queues.hpp"
#include "pmlib/core/vain_polls.hpp"
#include "proto/documents/stack_tree.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <unistd.h>
#include <utility>

namespace score::node {

namespace {

constexpr Duration kCheckPause = std::chrono::milliseconds{1};
constexpr Duration kForTheWay = std::chrono::milliseconds{100};  // of the answer
constexpr Duration kLongestLimit = std::chrono::seconds{60};
constexpr std::size_t kMaxEventsBytes = 256;
constexpr std::size_t kMaxStatBytes = 1'024;

// Without cgroups the tasks have been sent SIGSTOP. The state follows the name of the program.
bool has_state_stopped(pid_t process) {
  const auto text = read_file(fmt::format("/proc/{}/stat", process), kMaxStatBytes);
  if (!text) return true;  // it has ended
  const auto name_end = text->rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text->size()) return false;
  return std::string_view("TtZX").find((*text)[name_end + 2]) != std::string_view::npos;
}

bool are_stopped(const StacksParts& parts, const Attempt& attempt) {
  if (parts.cgroups == nullptr) return std::ranges::all_of(attempt.tasks, has_state_stopped);
  const auto events =
      read_file(parts.cgroups->tasks_path(attempt.id) + "/cgroup.events", kMaxEventsBytes);
  return events && parse_cgroup_events(*events).frozen;
}

wire::StacksReply refusal(std::string reason) {
  wire::StacksReply reply;
  reply.set_reason(std::move(reason));
  return reply;
}

std::string list_of(const std::vector<std::uint32_t>& ranks) {
  return proto::rank_list(std::set<std::uint32_t>(ranks.begin(), ranks.end()));
}

// A context that cannot be read does not poll.
bool polls_in_vain(int context) {
  pm::ContextState state{};
  std::uint64_t rested_us = 0;
  const auto reads = [context](auto& to, std::size_t at) {
    return pread(context, &to, sizeof to, static_cast<off_t>(at)) == ssize_t{sizeof to};
  };
  return reads(state, offsetof(pm::SegmentHeader, state)) && state == pm::ContextState::Waits &&
         reads(rested_us, offsetof(pm::SegmentHeader, rested_us)) && rested_us == pm::kPollsInVain;
}

void add_states(const ContextSet& contexts, const wire::StacksRequest& request,
                wire::StacksReply& reply) {
  const auto wanted = IndexSet::parse(request.ranks(), limits::kMaxTasksPerJob);
  for (const UniqueFd& context : contexts) {
    pm::SegmentSummary summary;
    if (pm::read_summary(context.get(), summary) != 0) continue;
    if (!request.ranks().empty() && !(wanted && wanted->contains(summary.rank))) continue;
    auto& state = *reply.add_states();
    state.set_rank(summary.rank);
    state.set_waits(summary.waits);
    state.set_polls(polls_in_vain(context.get()));
    if (pm::WaitNote note; summary.waits && pm::read_wait_note(context.get(), note) == 0) {
      state.set_call(note.call.data());
      state.set_from(note.source + 1);
      state.set_message_tag(note.tag + 1);
      state.set_bytes(note.bytes);
    }
    if (pm::QueueSummary queues; pm::read_queues(context.get(), queues) == 0) {
      state.set_received(queues.received);
      state.set_received_from(list_of(queues.received_from));
      state.set_sending_to(list_of(queues.sending_to));
    }
  }
}

wire::StacksReply reply_of(const StacksParts& parts, const Attempt& attempt,
                           const wire::StacksRequest& request,
                           const wire::ShepherdStacksRead& read) {
  wire::StacksReply reply;
  proto::StackTree tree;
  if (!read.reason().empty()) {
    reply = refusal(read.reason().substr(0, limits::kMaxErrorTextBytes));
  } else if (!tree.merge(read.tree(), limits::kMaxTasksPerJob, attempt.ranks.size())) {
    reply = refusal("its shepherd has sent stacks that cannot be read");
  } else {
    *reply.mutable_tree() = tree.to_wire(proto::StackTree::kMaxNodeBytes);
  }
  if (const auto contexts = parts.networks.contexts().of(attempt.id)) {
    add_states(*contexts, request, reply);
  }
  return reply;
}

// Sends the request to the shepherd and takes its answer, which may be missing.
asio::awaitable<std::optional<wire::ShepherdStacksRead>> ask_shepherd(StacksParts parts,
                                                                      AttemptPtr attempt,
                                                                      wire::StacksRequest request,
                                                                      TimePoint deadline) {
  wire::ShepherdStacks question;
  question.set_tag(request.tag());
  question.set_ranks(request.ranks());
  question.set_threads(request.threads());
  question.set_limit_ns((deadline - parts.clock.now()).count());
  attempt->stacks.reset();
  proto::send(*attempt->connection, question);
  while (!attempt->is_removed && parts.clock.now() < deadline) {
    const bool is_there = attempt->stacks && attempt->stacks->tag() == request.tag();
    if (is_there) co_return std::exchange(attempt->stacks, std::nullopt);
    co_await parts.clock.sleep_for(kCheckPause);
  }
  co_return std::nullopt;
}

asio::awaitable<wire::StacksReply> read_one(StacksParts parts, AttemptPtr attempt,
                                            wire::StacksRequest request) {
  const TimePoint begin = parts.clock.now();
  const Duration limit = std::clamp(Duration(request.limit_ns()), kForTheWay, kLongestLimit);
  const TimePoint deadline = begin + limit - kForTheWay;
  while (!attempt->is_removed && !is_stopped(parts, *attempt)) {
    if (parts.clock.now() >= deadline) co_return refusal("it was not stopped in time");
    co_await parts.clock.sleep_for(kCheckPause);
  }
  const Duration stopped = parts.clock.now() - begin;
  const auto read = co_await ask_shepherd(parts, attempt, request, deadline);
  if (!read) co_return refusal("its shepherd did not answer in time");
  auto reply = reply_of(parts, *attempt, request, *read);
  reply.set_stopped_ns(stopped.count());
  co_return reply;
}

}  // namespace

// An attempt that only waits for its turn might continue in the middle.
bool is_stopped(const StacksParts& parts, const Attempt& attempt) {
  return gang::is_left_out(parts.agent.plan(), attempt.id, parts.clock.now()) &&
         are_stopped(parts, attempt);
}

asio::awaitable<void> answer_stacks(StacksParts parts, wire::StacksRequest request) {
  const auto attempt = parts.attempts.find(AttemptId(request.attempt()));
  wire::StacksReply reply;
  if (!attempt || !attempt->connection || attempt->tasks.empty()) {
    reply = refusal("it does not run here");
  } else if (!attempt->reads_stacks) {
    reply = refusal("its shepherd is of an older release, which cannot read stacks");
  } else {
    reply = co_await read_one(parts, attempt, request);
  }
  reply.set_tag(request.tag());
  if (parts.head.is_greeted()) parts.head.send(reply);
}

}  // namespace score::node
