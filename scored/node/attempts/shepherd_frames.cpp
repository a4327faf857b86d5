#include "scored/node/attempts/shepherd_frames.hpp"

#include "base/os/log.hpp"
#include "proto/frames/key_values.hpp"
#include "scored/node/attempts/attempt_usage.hpp"
#include "scored/node/attempts/process_tree.hpp"

#include <algorithm>
#include <csignal>

namespace score::node {

using proto::FrameType;

namespace {

// Limits what one attempt of one node sends to the head. An honest shepherd stays far below. A user
// who impersonates it must not keep the head from serving others. Frames that are not read wait in
// the shepherd.
constexpr Duration kWindow = std::chrono::milliseconds{100};
constexpr std::uint32_t kMostFrames = 500;  // per window
constexpr std::size_t kLargestPiece = proto::kMaxFencePieceBytes + limits::kKiB;
constexpr double kCostOfAnswer = 256.0 * limits::kKiB;
constexpr std::size_t kLongestPermission = 64;
constexpr int kRoomChecks = 25;
constexpr Duration kRoomCheckPause = std::chrono::milliseconds{2};
constexpr int kEndChecks = 20;
constexpr Duration kEndCheckPause = std::chrono::milliseconds{5};
constexpr UserId kUnknownUser{0xffff'ffffU};

TimePoint due_by_count(Attempt& attempt, TimePoint now) {
  if (now - attempt.window >= kWindow) {
    attempt.window = now;
    attempt.frames = 0;
  }
  return ++attempt.frames <= kMostFrames ? now : attempt.window + kWindow;
}

// Returns what the frame costs the head, in bytes that go through it; 0: it is not paced. The head
// answers some small frames with messages to all nodes of the job.
double exchange_cost(const proto::InFrame& frame) {
  switch (frame.type) {
    case FrameType::FenceEnter:
    case FrameType::JobRelay:
      return static_cast<double>(frame.payload.size());
    case FrameType::NetworkRequest:
    case FrameType::ScratchReady:
    case FrameType::ShepherdCheckpointed:
      return kCostOfAnswer;
    default:
      return 0;
  }
}

}  // namespace

// Returns when the frame that has just arrived may be passed on.
TimePoint ShepherdFrames::due(Attempt& attempt, const proto::InFrame& frame) {
  const TimePoint now = parts_.clock.now();
  const TimePoint counted = due_by_count(attempt, now);
  const UserId user = attempt.user.value_or(kUnknownUser);
  if (const double cost = exchange_cost(frame); cost > 0) {
    return std::max(counted, exchange_pace_.reserve(user, cost, now));
  }
  if (frame.type != FrameType::TaskOutput || !is_shared_(attempt)) return counted;
  return std::max(counted, output_budget_.reserve(user, frame.payload.size(), now));
}

asio::awaitable<void> ShepherdFrames::read(AttemptPtr attempt) {
  const auto connection = attempt->connection;
  for (;;) {
    auto frame = co_await connection->read(proto::Role::Shepherd);
    // Only the daemon is stopping; the shepherd and its tasks keep running.
    if (!frame && frame.error().is(Errc::Cancelled)) co_return;
    if (!frame) break;
    const TimePoint at = due(*attempt, *frame);
    if (at > parts_.clock.now()) co_await parts_.clock.sleep_until(at);
    // Without a head the frame waits, and the shepherd keeps it.
    if (!attempt->is_removed) co_await parts_.head.ready();
    if (frame->type == FrameType::JobRelay && frame->payload.size() > proto::kMaxFencePieceBytes)
      co_await ask_for_room(attempt, frame->payload.size());
    if (attempt->is_removed) {
      if (frame->type == FrameType::ShepherdScratch) on_scratch(*attempt, *frame);
      continue;
    }
    if (frame->type == FrameType::ShepherdDone && !co_await may_end(attempt)) continue;
    if (on_frame(*attempt, *frame)) continue;
    log_warning("Ended an attempt: unexpected frame from its shepherd", kv("attempt", attempt->id),
                kv("frame", proto::name_of(frame->type)));
    break;
  }
  connection->close();
  if (attempt->is_removed) co_return;
  attempt->is_shepherd_gone = true;
  note_memory(*attempt);
  gang::ShepherdGone gone;
  gone.signal = co_await signal_of_end(attempt);
  gone.usage = usage_of(parts_, *attempt, {});
  if (attempt->is_removed) co_return;
  if (!attempt->is_killed) {
    log_warning("Shepherd died", kv("attempt", attempt->id), kv("pid", attempt->shepherd),
                kv("signal", gone.signal));
  }
  handlers_.event(attempt->id, gone);
}

// Large messages wait here, and behind them their shepherd, while others of the same user fill the
// user's budget in the head.
asio::awaitable<void> ShepherdFrames::ask_for_room(AttemptPtr attempt, std::size_t bytes) {
  wire::JobRelay question;
  question.set_attempt(attempt->id.value());
  question.set_ask_bytes(bytes);
  attempt->may_relay = false;
  while (!attempt->is_removed && !attempt->is_resuming && parts_.head.bounds_exchange()) {
    co_await parts_.head.ready();
    parts_.head.send(question);
    for (int check = 0; check < kRoomChecks && !attempt->may_relay; ++check)
      co_await parts_.clock.sleep_for(kRoomCheckPause);
    if (attempt->may_relay) co_return;
  }
}

bool ShepherdFrames::is_permission(Attempt& attempt, const proto::InFrame& frame) {
  if (frame.type != FrameType::JobRelay || frame.payload.size() > kLongestPermission) return false;
  const auto message = proto::parse<wire::JobRelay>(frame);
  if (!message || !message->may_send()) return false;
  attempt.may_relay = true;
  return true;
}

void ShepherdFrames::note_refusal(Attempt& attempt, const proto::InFrame& frame) {
  if (frame.type != FrameType::TaskOutputRefused) return;
  const auto message = proto::parse<wire::TaskOutputRefused>(frame);
  attempt.has_refused_output = message && !message->repeat();
}

// Waits for the signal, because the launcher reaps the shepherd a moment after its connection has
// ended. Returns 0 if it is unknown or if there was no signal.
asio::awaitable<int> ShepherdFrames::signal_of_end(AttemptPtr attempt) {
  for (int check = 0; check < kEndChecks && attempt->pidfd && !attempt->is_killed; ++check) {
    if (const auto signal = signal_that_ended(attempt->pidfd.get())) co_return *signal;
    co_await parts_.clock.sleep_for(kEndCheckPause);
  }
  co_return 0;
}

// The end of an attempt must not be reported before the head has its last output. A report over a
// link that broke unnoticed would release a shepherd that still has output to repeat, and so would
// a report that follows refused output. Returns false if the shepherd will repeat ShepherdDone
// after that output.
asio::awaitable<bool> ShepherdFrames::may_end(AttemptPtr attempt) {
  const auto may_not = [attempt] {
    return attempt->is_resuming || attempt->is_removed || attempt->has_refused_output;
  };
  if (may_not()) co_return false;
  if (!attempt->is_unconfirmed) co_return true;
  const bool is_confirmed = co_await parts_.head.confirm();
  if (is_confirmed) attempt->is_unconfirmed = false;
  co_return is_confirmed && !may_not();
}

bool ShepherdFrames::on_frame(Attempt& attempt, const proto::InFrame& frame) {
  switch (frame.type) {
    case FrameType::TaskOutput:
      return pass_to_head<wire::TaskOutput>(attempt, frame);
    case FrameType::TaskInputTaken:
      return pass_to_head<wire::TaskInputTaken>(attempt, frame);
    case FrameType::FenceEnter:
      if (attempt.sends_fence_pieces && frame.payload.size() > kLargestPiece) return false;
      return pass_to_head<wire::FenceEnter>(attempt, frame);
    case FrameType::JobRelay:
      return pass_to_head<wire::JobRelay>(attempt, frame);
    case FrameType::ScratchReady:
      return pass_to_head<wire::ScratchReady>(attempt, frame);
    case FrameType::ShepherdScratch:
      return on_scratch(attempt, frame);
    case FrameType::ShepherdStacksRead:
      return keep_answer(attempt.stacks, frame);
    case FrameType::ShepherdCheckpointed:
      return on_checkpointed(attempt, frame);
    case FrameType::NetworkRequest:
    case FrameType::ShepherdNetwork:
    case FrameType::PassedDescriptors:
      return attempt.is_retired || parts_.networks.from_shepherd(attempt.id, frame);
    case FrameType::ShepherdReport:
      attempt.is_resuming = false;
      return true;
    case FrameType::ShepherdTaskEnded:
      return on_task_ended(attempt, frame);
    default:
      return on_event(attempt, frame);
  }
}

// Returns true if the kernel has killed a process of it because memory was exhausted.
bool ShepherdFrames::note_memory(const Attempt& attempt) {
  const std::uint32_t kills = parts_.cgroups == nullptr ? 0 : parts_.cgroups->oom_kills(attempt.id);
  if (kills == 0) return false;
  const auto cause = attempt.memory > Bytes(0)
                         ? fmt::format("memory limit {} exceeded", attempt.memory)
                         : std::string("the node's memory is exhausted");
  handlers_.out_of_memory(
      attempt.id, kills,
      fmt::format("{}; the kernel killed {} process{}", cause, kills, kills == 1 ? "" : "es"));
  return true;
}

bool ShepherdFrames::on_scratch(Attempt& attempt, const proto::InFrame& frame) {
  const auto message = proto::parse<wire::ShepherdScratch>(frame);
  if (!message || !attempt.has_volume) return false;
  attempt.volume = message->sample();
  attempt.volume.set_attempt(attempt.id.value());
  attempt.is_volume_gone = message->is_removed();
  return true;
}

bool ShepherdFrames::on_checkpointed(Attempt& attempt, const proto::InFrame& frame) {
  const auto message = proto::parse<wire::ShepherdCheckpointed>(frame);
  if (!message) return false;
  if (!message->wanted()) return keep_answer(attempt.checkpointed, frame);
  wire::CheckpointReply question;
  question.set_wanted(attempt.id.value());
  parts_.head.send(question);
  return true;
}

template <class Message>
bool ShepherdFrames::keep_answer(std::optional<Message>& place, const proto::InFrame& frame) {
  auto message = proto::parse<Message>(frame);
  if (!message) return false;
  place = *std::move(message);
  return true;
}

bool ShepherdFrames::on_event(Attempt& attempt, const proto::InFrame& frame) {
  switch (frame.type) {
    case FrameType::ShepherdReady: {
      const auto message = proto::parse<wire::ShepherdReady>(frame);
      if (!message) return false;
      attempt.reads_stacks = message->reads_stacks();
      handlers_.event(attempt.id, gang::ShepherdReady{});
      return true;
    }
    case FrameType::ShepherdStarted: {
      const auto message = proto::parse<wire::ShepherdStarted>(frame);
      if (!message) return false;
      auto started = proto::from_wire(*message);
      if (!started) return false;
      attempt.tasks = attempt.has_own_ids ? outer_ids(attempt.shepherd, started->pids)
                                          : std::move(started->pids);
      if (!attempt.tasks.empty()) parts_.switcher.set_leader(attempt.id, attempt.tasks.front());
      handlers_.event(attempt.id, gang::ShepherdStarted{});
      return true;
    }
    case FrameType::ShepherdDone:
      return on_done(attempt, frame);
    case FrameType::ShepherdRefused: {
      const auto message = proto::parse<wire::ShepherdRefused>(frame);
      if (!message) return false;
      handlers_.event(attempt.id, gang::ShepherdRefused{message->exit_code(), message->reason(),
                                                        message->may_retry()});
      return true;
    }
    case FrameType::ShepherdAbort: {
      const auto message = proto::parse<wire::ShepherdAbort>(frame);
      if (!message) return false;
      handlers_.event(attempt.id, gang::ShepherdAbort{
                                      Rank{message->rank()}, message->code(), message->message(),
                                      TimePoint(Duration(message->asked_ns())), message->left()});
      return true;
    }
    default:
      return false;
  }
}

bool ShepherdFrames::on_done(Attempt& attempt, const proto::InFrame& frame) {
  const auto message = proto::parse<wire::ShepherdDone>(frame);
  if (!message) return false;
  const auto reaped = proto::from_wire(message->usage());
  if (!reaped) return false;
  note_memory(attempt);
  handlers_.event(attempt.id, gang::ShepherdDone{usage_of(parts_, attempt, *reaped)});
  return true;
}

bool ShepherdFrames::on_task_ended(Attempt& attempt, const proto::InFrame& frame) {
  const auto message = proto::parse<wire::ShepherdTaskEnded>(frame);
  if (!message) return false;
  auto exit = proto::from_wire(message->exit());
  if (!exit) return false;
  exit->was_ending =
      std::ranges::find(attempt.was_ending, exit->rank.value()) != attempt.was_ending.end();
  // A shell that lost a child either fails by itself or continues and ends normally. The end of the
  // attempt reports the second case.
  const bool has_failed = exit->signal != 0 || exit->code != 0;
  if (has_failed && !attempt.is_killed && note_memory(attempt)) {
    handlers_.ended(attempt.id, "out of memory");
  }
  handlers_.event(attempt.id, gang::ShepherdTaskExited{*exit});
  return true;
}

template <class Message>
bool ShepherdFrames::pass_to_head(Attempt& attempt, const proto::InFrame& frame) {
  const auto message = proto::parse<Message>(frame);
  if (!message || message->attempt() != attempt.id.value()) return false;
  if (attempt.is_resuming) return true;
  attempt.is_unconfirmed = attempt.is_unconfirmed || frame.type == FrameType::TaskOutput;
  parts_.head.send(frame.type, frame.payload);
  return true;
}

namespace {

template <class Message>
Result<AttemptId> attempt_of(const proto::InFrame& frame) {
  const auto message = proto::parse<Message>(frame);
  if (!message) return message.error();
  return AttemptId{message->attempt()};
}

}  // namespace

Result<AttemptId> shepherd_frame_attempt(const proto::InFrame& frame) {
  switch (frame.type) {
    case FrameType::TaskOutputTaken:
      return attempt_of<wire::TaskOutputTaken>(frame);
    case FrameType::TaskOutputRefused:
      return attempt_of<wire::TaskOutputRefused>(frame);
    case FrameType::TaskInput:
      return attempt_of<wire::TaskInput>(frame);
    case FrameType::ScratchServers:
      return attempt_of<wire::ScratchServers>(frame);
    case FrameType::FenceDone:
      return attempt_of<wire::FenceDone>(frame);
    case FrameType::JobRelay:
      return attempt_of<wire::JobRelay>(frame);
    case FrameType::TerminalSize:
      return attempt_of<wire::TerminalSize>(frame);
    default:
      return AttemptId();
  }
}

}  // namespace score::node
