// What shepherds and the head send each other through this daemon. A shepherd runs as its user, so
// its frames are not trusted: it may speak for its own attempt alone.
#pragma once

#include "gang/node/node_agent.hpp"
#include "proto/convert/convert.hpp"
#include "scored/node/attempts/attempt.hpp"
#include "scored/node/attempts/output_budget.hpp"

#include <functional>

namespace score::node {

class ShepherdFrames {
 public:
  struct Handlers {
    std::function<void(AttemptId, const gang::ShepherdEvent&)> event;
    // The kernel has killed so many processes of the attempt because memory was exhausted.
    std::function<void(AttemptId, std::uint32_t, std::string)> out_of_memory;
    // The daemon ends the attempt for this reason, unless it has another.
    std::function<void(AttemptId, std::string)> ended;
  };

  // Whether jobs that the attempt's output would slow have tasks here.
  using IsShared = std::function<bool(const Attempt&)>;

  // `parts` outlives it. processors: of this node.
  ShepherdFrames(const AttemptParts& parts, Handlers handlers, std::size_t processors,
                 IsShared is_shared)
      : parts_(parts),
        handlers_(std::move(handlers)),
        output_budget_(processors),
        is_shared_(std::move(is_shared)) {}

  void report(AttemptId attempt, const gang::ShepherdEvent& event) const {
    handlers_.event(attempt, event);
  }

  // Until the connection ends; then ShepherdGone, unless the attempt is removed or the daemon
  // stops.
  asio::awaitable<void> read(AttemptPtr attempt);

 private:
  TimePoint due(Attempt& attempt, const proto::InFrame& frame);
  asio::awaitable<int> signal_of_end(AttemptPtr attempt);
  asio::awaitable<bool> may_end(AttemptPtr attempt);
  bool on_frame(Attempt& attempt, const proto::InFrame& frame);
  static bool on_scratch(Attempt& attempt, const proto::InFrame& frame);
  bool note_memory(const Attempt& attempt);
  bool on_event(Attempt& attempt, const proto::InFrame& frame);
  bool on_task_ended(Attempt& attempt, const proto::InFrame& frame);
  template <class Message>
  bool pass_to_head(Attempt& attempt, const proto::InFrame& frame);

  const AttemptParts& parts_;
  Handlers handlers_;
  OutputBudget output_budget_;
  IsShared is_shared_;
};

// The attempt that a frame for a shepherd is about, if it is one of those that pass through.
// 0: another frame. Errors: malformed.
[[nodiscard]] Result<AttemptId> shepherd_frame_attempt(const proto::InFrame& frame);

}  // namespace score::node
