// Counts the turns of a link in which nothing happens, and decides how often a reader polls.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"

#include <cstdint>

namespace score::pm::fi {

class Silence {
 public:
  explicit Silence(pm::Endpoint& pm);

  // Returns true if nothing has happened for some 50 us.
  bool is_long() const { return empty_turns_ > PollEpisode::kFreePolls; }

  // Returns the number of silences that have ended, modulo 2^32.
  std::uint32_t ended_count() const { return ended_count_; }

  void end() {
    empty_turns_ = 0;
    ++ended_count_;
    pm_.end_silence();
  }

  // Each turn calls one of these: something happened, so more may follow, or nothing did.
  void expect_more();

  void note_empty_turn() {
    ++empty_turns_;
    if (is_long()) yield_at_times();
  }

  // Returns how often a reader that finds nothing should poll before it gives up. MPIs yield the
  // processor between two reads, which takes longer than an answer, so it pays to poll again. The
  // number is small after each message, and 0 if the caller does other work in between or has lost
  // the processor.
  unsigned polls_before_giving_up();
  // Notes that these polls found nothing.
  void gave_up();

 private:
  [[gnu::noinline]] void yield_at_times();

  pm::Endpoint& pm_;
  unsigned empty_turns_ = 0;
  std::uint32_t ended_count_ = 0;
  unsigned polls_at_once_;
  unsigned polls_after_message_;
  unsigned polls_left_ = 0;
  std::uint64_t gave_up_ns_ = 0;  // 0: not since the last message
};

}  // namespace score::pm::fi
