// Handles the frames that shepherds and the head exchange through this daemon. A shepherd runs as
// its user, so its frames are not trusted: they may concern only its own attempt.
#pragma once

#include "base/limits.hpp"
#include "gang/node/node_agent.hpp"
#include "proto/convert/convert.hpp"
#include "scored/node/attempts/attempt.hpp"
#include "scored/node/link/output_budget.hpp"

#include <functional>

namespace score::node {

class ShepherdFrames {
 public:
  struct Handlers {
    std::function<void(AttemptId, const gang::ShepherdEvent&)> event;
    // The kernel has killed this many processes of the attempt because memory was exhausted.
    std::function<void(AttemptId, std::uint32_t, std::string)> out_of_memory;
    // The daemon ends the attempt for this reason, unless it already has a reason.
    std::function<void(AttemptId, std::string)> ended;
  };

  // Returns true if tasks run here of a job that the attempt's output would slow down.
  using IsShared = std::function<bool(const Attempt&)>;

  // Bytes per second, and at once, that the tasks of one user on this node may exchange with other
  // nodes through the head, which is one process for all users.
  static constexpr double kExchangeRate = 8.0 * limits::kMiB;
  static constexpr double kExchangeBurst = 16.0 * limits::kMiB;

  // `parts` must outlive it. processors: number of processors of this node.
  ShepherdFrames(const AttemptParts& parts, Handlers handlers, std::size_t processors,
                 IsShared is_shared)
      : parts_(parts),
        handlers_(std::move(handlers)),
        output_budget_(processors),
        exchange_pace_(kExchangeRate, kExchangeBurst),
        is_shared_(std::move(is_shared)) {}

  void report(AttemptId attempt, const gang::ShepherdEvent& event) const {
    handlers_.event(attempt, event);
  }

  // Returns true if the frame of the head was only its permission to send a large JobRelay.
  static bool is_permission(Attempt& attempt, const proto::InFrame& frame);
  // Notes whether the head has refused output of the attempt and not asked for it again.
  static void note_refusal(Attempt& attempt, const proto::InFrame& frame);

  // Reads frames until the connection ends. Reports ShepherdGone then, unless the attempt is
  // removed or the daemon stops.
  asio::awaitable<void> read(AttemptPtr attempt);

 private:
  TimePoint due(Attempt& attempt, const proto::InFrame& frame);
  asio::awaitable<void> ask_for_room(AttemptPtr attempt, std::size_t bytes);
  asio::awaitable<int> signal_of_end(AttemptPtr attempt);
  asio::awaitable<bool> may_end(AttemptPtr attempt);
  bool on_frame(Attempt& attempt, const proto::InFrame& frame);
  static bool on_scratch(Attempt& attempt, const proto::InFrame& frame);
  // Keeps the answer to a request of this daemon. A late one, which nothing waits for, is kept
  // until the next one or the attempt's end.
  template <class Message>
  static bool keep_answer(std::optional<Message>& place, const proto::InFrame& frame);
  bool note_memory(const Attempt& attempt);
  bool on_checkpointed(Attempt& attempt, const proto::InFrame& frame);
  bool on_event(Attempt& attempt, const proto::InFrame& frame);
  bool on_done(Attempt& attempt, const proto::InFrame& frame);
  bool on_task_ended(Attempt& attempt, const proto::InFrame& frame);
  template <class Message>
  bool pass_to_head(Attempt& attempt, const proto::InFrame& frame);

  const AttemptParts& parts_;
  Handlers handlers_;
  OutputBudget output_budget_;
  UserPace exchange_pace_;
  IsShared is_shared_;
};

// Returns the attempt of a frame that passes through to a shepherd, or 0 for any other frame. Fails
// if the frame is malformed.
[[nodiscard]] Result<AttemptId> shepherd_frame_attempt(const proto::InFrame& frame);

}  // namespace score::node
